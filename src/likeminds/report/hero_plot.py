"""The picture with which a report opens."""

from functools import partial

from likeminds import plots
from likeminds._util.array_types import Float
from likeminds.report.facts import ReportFacts
from likeminds.report.page import PagePicture, picture
from likeminds.schools.school_names import are_telling

# Inches of a picture that fits a phone.
NARROW = 3.5


def first_picture(facts: ReportFacts) -> list[PagePicture]:
    """Return what one should see first: the map of people, or what they say yes to most."""
    found = facts.schools
    if found is None or not (found.axes or found.soft_labels):
        return []
    if not found.axes:
        draw_shares = partial(plots.item_shares, found)
        caption = "Each dot is an item; its line holds the true share with a probability of 90 %."
        alt = "Share of people that say yes to each item, in order"
        return [picture(draw_shares(), alt, caption, narrow=draw_shares(width=NARROW))]
    caption = "Each dot is a person; people near each other rank the items alike."
    draw = partial(plots.people_map, found, items=facts.items, images=facts.images)
    if are_shown(facts, found.axes[0].strength):
        caption += (
            f" Pictures: what people at this end {facts.verb.most(many=True)}, unlike others."
        )
    if found.loner.any():
        caption += " Rings: on their own."
    alt, narrow = "Map of people by school of thought", draw(width=NARROW)
    return [picture(draw(), alt, caption, narrow=narrow)]


def are_shown(facts: ReportFacts, strength: Float) -> bool:
    """Tell whether pictures say what sets people apart, where names of features cannot."""
    if facts.images is None or facts.schools is None:
        return False
    return not are_telling(strength, facts.schools.feature_names)
