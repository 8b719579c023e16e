"""What requests and answers look like: strict on the way in, described on the way out."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue


def _speakable(text: str) -> str:
    """Refuse what no database and no log can hold: control characters and half characters."""
    if any(ord(sign) < 32 or ord(sign) == 127 or 0xD800 <= ord(sign) <= 0xDFFF for sign in text):
        raise ValueError("control characters and single surrogates are not allowed")
    return text


Name = Annotated[str, Field(min_length=1, max_length=256), AfterValidator(_speakable)]
WriteKey = Annotated[str, Field(min_length=8, max_length=128), AfterValidator(_speakable)]
Count = Annotated[int, Field(ge=1, le=1000)]


class Strict(BaseModel):
    """Nothing that is not asked for, and nothing turned into something else."""

    model_config = ConfigDict(extra="forbid", strict=True)


def _example(**given: JsonValue) -> ConfigDict:
    """Return the configuration of a request with an example, which runs on the demo."""
    return ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [given]})


_ATTRIBUTE, _ITEM, _OTHER = "comfortable", "shoe-00001", "shoe-00007"


class Asked(BaseModel):
    """Parameters of an address: texts, turned into numbers; nothing else is taken."""

    model_config = ConfigDict(extra="forbid")

    attribute: Name | None = Field(None, description="Which attribute, where there are several")


class Paged(Asked):
    """A page of something."""

    offset: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    limit: Count = 10


class Search(BaseModel):
    """A page of names that hold a text."""

    model_config = ConfigDict(extra="forbid")

    q: Annotated[str, Field(max_length=256), AfterValidator(_speakable)] = ""
    offset: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    limit: Count = 50


Intervals = Literal["none", "scores", "ranks"]


class FeatureRange(Strict):
    """Items with a feature in a range."""

    feature: Name
    least: float | None = Field(None, allow_inf_nan=False)
    most: float | None = Field(None, allow_inf_nan=False)


class RankRequest(Strict):
    """Which items, in which order, for whom."""

    model_config = _example(attribute=_ATTRIBUTE, user=None, limit=3, intervals="scores")

    user: Name | None = Field(None, description="For whom; without one, what all agree on")
    attribute: Name | None = None
    limit: Count = 10
    offset: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    only: list[Name] | None = Field(default=None, description="Rank nothing but these items")
    exclude: list[Name] = Field(default=[], description="Leave these items out")
    exclude_labelled: bool = Field(False, description="Leave out what the person has judged")
    features: list[FeatureRange] = Field(
        default=[], description="Items with features in these ranges"
    )
    intervals: Intervals = "none"


class RankBatch(Strict):
    """Several rankings at once."""

    model_config = _example(
        requests=[{"attribute": _ATTRIBUTE, "limit": 2}, {"attribute": _ATTRIBUTE, "only": [_ITEM]}]
    )

    requests: Annotated[list[RankRequest], Field(min_length=1)]


Expected = Annotated[
    float | None,
    Field(description="Expected grade, or probability of a yes; null where users choose"),
]


class RankedItem(BaseModel):
    """An item in its place."""

    rank: int
    item: str
    text: str | None
    picture: bool
    score: float
    expected: Expected
    interval: list[float] | None = Field(description="90 % of the score")
    ranks: list[int] | None = Field(description="90 % of the rank: lowest and highest")


class RankingResponse(BaseModel):
    """The best items first."""

    user: str | None
    attribute: str | None
    generation: str
    total: int = Field(description="How many items are ranked")
    items: list[RankedItem]


class RankingsResponse(BaseModel):
    """One ranking for each request, in their order."""

    rankings: list[RankingResponse]


class ScoreRequest(Strict):
    """Items to be scored for somebody."""

    model_config = _example(attribute=_ATTRIBUTE, items=[_ITEM, _OTHER])

    user: Name | None = None
    attribute: Name | None = None
    items: Annotated[list[Name], Field(min_length=1)]


class ScoredItem(BaseModel):
    """An item with its score."""

    item: str
    text: str | None
    score: float
    expected: Expected
    error: float | None
    interval: list[float] | None


class Scores(BaseModel):
    """Scores in the order of the items asked for."""

    user: str | None
    attribute: str | None
    generation: str
    scores: list[ScoredItem]


class ScoreBatch(Strict):
    """Several people's scores at once."""

    model_config = _example(requests=[{"attribute": _ATTRIBUTE, "items": [_ITEM, _OTHER]}])

    requests: Annotated[list[ScoreRequest], Field(min_length=1)]


class ScoresBatch(BaseModel):
    """One list of scores for each request, in their order."""

    answers: list[Scores]


class ExplainRequest(Strict):
    """A score to be explained."""

    model_config = _example(attribute=_ATTRIBUTE, item=_ITEM)

    user: Name | None = None
    attribute: Name | None = None
    item: Name


class CompareRequest(Strict):
    """Two people; nobody is what all agree on."""

    model_config = _example(attribute=_ATTRIBUTE, a=None, b=None)

    a: Name | None = None
    b: Name | None = None
    attribute: Name | None = None


class FeaturePart(BaseModel):
    """What a feature adds to a score, by level, compared with the average item."""

    feature: str
    value: float
    average: float
    consensus: float
    group: float
    personal: float
    total: float


class LevelParts(BaseModel):
    """What each level adds to a score."""

    consensus: float
    group: float
    personal: float
    item: float


class Explained(BaseModel):
    """A score taken apart: it is the sum of its levels, seen from the average item.

    With ``average_item``, the score of that one, it is the score that rankings have.
    """

    user: str | None
    attribute: str | None
    item: str
    text: str | None
    score: float
    expected: Expected
    average_item: float
    error: float | None
    interval: list[float] | None
    levels: LevelParts
    features: list[FeaturePart]


class NewPerson(Strict):
    """Somebody new; without an id, they get one."""

    model_config = _example()

    user: Name | None = None


class Created(BaseModel):
    """Somebody new, and the token that opens their labels; it is shown once."""

    user: str
    token: str


class OneLabel(Strict):
    """What somebody says about an item."""

    model_config = _example(attribute=_ATTRIBUTE, item=_ITEM, label=True)

    item: Name
    attribute: Name | None = None
    label: bool | Annotated[float, Field(allow_inf_nan=False)] | Name | None = Field(
        description="An answer of `/v1/model`: true or false, a grade, or a word; null to take "
        "it back"
    )


class NewLabels(Strict):
    """Labels of one person."""

    model_config = _example(labels=[{"attribute": _ATTRIBUTE, "item": _ITEM, "label": True}])

    labels: Annotated[list[OneLabel], Field(min_length=1)]


class Stored(BaseModel):
    """What was stored."""

    user: str
    stored: int
    labels: int = Field(description="How many labels there are now")


class SaidLabel(BaseModel):
    """A label, and when it was given."""

    item: str
    attribute: str | None
    text: str | None
    label: bool | float | str
    at: float


class SaidLabels(BaseModel):
    """What somebody told the service, the oldest first."""

    user: str
    labels: list[SaidLabel]


class AskNext(BaseModel):
    """Items whose labels would tell most."""

    user: str
    attribute: str | None
    items: list[dict[str, Any]]


class LevelShares(BaseModel):
    """The share of each level in the variance of somebody's scores."""

    consensus: float
    group: float
    personal: float


class Standing(BaseModel):
    """Where somebody stands among the others."""

    user: str | None
    attribute: str | None
    coordinates: list[float] = Field(description="On the map of people")
    school: int | None = Field(description="The likeliest; null where no schools stand apart")
    school_name: str | None
    membership: list[float] = Field(description="How likely it is each school")
    standing: LevelShares
    labels: int = Field(description="How many labels the service was told")


class View(BaseModel):
    """All that a page shows after an answer."""

    standing: Standing
    ranking: RankingResponse
    ask: AskNext


class StoredData(BaseModel):
    """All that is stored about somebody."""

    user: str
    created: float | None
    labels: list[SaidLabel]
    in_model: bool = Field(description="Whether the model has learned from them")


class Deleted(BaseModel):
    """What was deleted."""

    user: str
    labels: int
    model: str = Field(description="What becomes of what the model has learned from them")


class Facts(BaseModel):
    """Facts of many kinds; see the examples."""

    model_config = ConfigDict(extra="allow")


class Refresh(BaseModel):
    """How the last refresh went."""

    running: bool
    last: str | None
    generation: str
