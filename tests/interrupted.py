"""A ranker during whose fit somebody presses Ctrl-C."""

from likeminds import ThreeLevelRanker


class Interrupted(ThreeLevelRanker):
    """Stops at its first step, with the best levels so far and a warning."""

    def _levels(self, *arguments):
        def stop(*_):
            raise KeyboardInterrupt

        self.callback = stop
        return super()._levels(*arguments)
