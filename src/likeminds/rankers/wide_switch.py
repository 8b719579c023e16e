"""How wide features are learned from: in the space of rows, or in their leading directions."""

# More directions than this are learned from in the space of rows, or reduced to as many.
WIDE = 256
# Of items with effects of their own, so many directions are kept as they are.
WIDE_SHARED = 512


def choose_width(
    asked: bool | str, size: int, *, each_feature: bool, matrices: bool, shared: bool
) -> tuple[bool, int | None]:
    """Return whether to learn in the space of rows, and how many directions are kept at most.

    Parameters
    ----------
    asked : bool or "auto"
        The parameter ``wide``.
    size : int
        In how many directions the labelled items can differ.
    each_feature : bool
        Whether single features are fixed or have signs, so each is a coordinate.
    matrices : bool
        Whether the model needs matrices of directions x directions: a full or diagonal covariance,
        covariates of users, a loss whose rows are not items, item effects.
    shared : bool
        Whether items have effects of their own if these are affordable.
    """
    if asked is True and each_feature:
        raise ValueError(
            "wide=True mixes features into directions, but fixed, signs and draws are about single "
            "features: leave out either."
        )
    if not asked or not size or each_feature:
        return False, None
    if asked == "auto" and size <= (WIDE_SHARED if shared else WIDE):
        return False, None
    return (False, WIDE) if matrices or shared else (True, None)
