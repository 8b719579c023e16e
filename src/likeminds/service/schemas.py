"""Schemas of requests and responses."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue


def _printable(text: str) -> str:
    """Raise ValueError for control characters and single surrogates, which cannot be stored."""
    if any(ord(sign) < 32 or ord(sign) == 127 or 0xD800 <= ord(sign) <= 0xDFFF for sign in text):
        raise ValueError("control characters and single surrogates are not allowed")
    return text


Name = Annotated[str, Field(min_length=1, max_length=256), AfterValidator(_printable)]
WriteKey = Annotated[str, Field(min_length=8, max_length=128), AfterValidator(_printable)]
Count = Annotated[int, Field(ge=1, le=1000)]
Offset = Annotated[int, Field(ge=0, le=10_000_000)]
Intervals = Literal["none", "scores", "ranks"]


def _example(**given: JsonValue) -> ConfigDict:
    """Return the configuration of a request, with an example for the demo."""
    return ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [given]})


_ATTRIBUTE, _ITEM, _OTHER = "comfortable", "shoe-00001", "shoe-00007"

# Query parameters: numbers are read from text, and unknown parameters are an error.


class AttributeQuery(BaseModel):
    """An attribute."""

    model_config = ConfigDict(extra="forbid")

    attribute: Name | None = Field(None, description="The attribute, if there are several")


class ItemQuery(AttributeQuery):
    """An item by its id."""

    item: Name


class SchoolQuery(AttributeQuery):
    """A school by its number."""

    number: Annotated[int, Field(ge=1, le=1000)]


class PageQuery(AttributeQuery):
    """A page of a list."""

    offset: Offset = 0
    limit: Count = 10


class RankingQuery(PageQuery):
    """A page of a user's ranking."""

    intervals: Intervals = "scores"
    exclude_labelled: bool = False


class NextItemsQuery(AttributeQuery):
    """The number of items to ask about."""

    limit: Count = 1


class ViewQuery(RankingQuery):
    """A page of a ranking, and items to ask about."""

    ask: Count = Field(1, description="The number of items to ask about")


class SearchQuery(BaseModel):
    """A page of names that contain a text."""

    model_config = ConfigDict(extra="forbid")

    q: Annotated[str, Field(max_length=256), AfterValidator(_printable)] = ""
    offset: Offset = 0
    limit: Count = 50


# Request bodies: unknown fields are an error, and types are not converted.


class FeatureRange(BaseModel):
    """Items with a feature in a range."""

    model_config = ConfigDict(extra="forbid", strict=True)

    feature: Name
    least: float | None = Field(None, allow_inf_nan=False)
    most: float | None = Field(None, allow_inf_nan=False)


class AttributeRequest(BaseModel):
    """A request about an attribute."""

    attribute: Name | None = None


class UserRequest(AttributeRequest):
    """A request for a user."""

    user: Name | None = Field(None, description="The user; null for the consensus")


class RankRequest(UserRequest):
    """Items to be ranked for a user."""

    model_config = _example(attribute=_ATTRIBUTE, user=None, limit=3, intervals="scores")

    limit: Count = 10
    offset: Offset = 0
    only: list[Name] | None = Field(default=None, description="Rank only these items")
    exclude: list[Name] = Field(default=[], description="Leave these items out")
    exclude_labelled: bool = Field(False, description="Leave out items that the user has labelled")
    features: list[FeatureRange] = Field(
        default=[], description="Rank only items with features in these ranges"
    )
    intervals: Intervals = "none"


class RankBatch(BaseModel):
    """Several rankings at once."""

    model_config = _example(
        requests=[{"attribute": _ATTRIBUTE, "limit": 2}, {"attribute": _ATTRIBUTE, "only": [_ITEM]}]
    )

    requests: Annotated[list[RankRequest], Field(min_length=1)]


class ScoreRequest(UserRequest):
    """Items to be scored for a user."""

    model_config = _example(attribute=_ATTRIBUTE, items=[_ITEM, _OTHER])

    items: Annotated[list[Name], Field(min_length=1)]


class ScoreBatch(BaseModel):
    """Several users' scores at once."""

    model_config = _example(requests=[{"attribute": _ATTRIBUTE, "items": [_ITEM, _OTHER]}])

    requests: Annotated[list[ScoreRequest], Field(min_length=1)]


class ExplainRequest(UserRequest):
    """A score to be explained."""

    model_config = _example(attribute=_ATTRIBUTE, item=_ITEM)

    item: Name


class CompareRequest(AttributeRequest):
    """Two users; null is the consensus."""

    model_config = _example(attribute=_ATTRIBUTE, a=None, b=None)

    a: Name | None = None
    b: Name | None = None


class NewUser(BaseModel):
    """A new user; without an id, the service makes one."""

    model_config = _example()

    user: Name | None = None


class OneLabel(AttributeRequest):
    """A user's label of an item."""

    model_config = _example(attribute=_ATTRIBUTE, item=_ITEM, label=True)

    item: Name
    label: bool | Annotated[float, Field(allow_inf_nan=False)] | Name | None = Field(
        description="One of the answers in `/v1/model`: true or false, a grade, or a word. Null "
        "or a pass deletes the label"
    )


class NewLabels(BaseModel):
    """Labels of one user."""

    model_config = _example(labels=[{"attribute": _ATTRIBUTE, "item": _ITEM, "label": True}])

    labels: Annotated[list[OneLabel], Field(min_length=1)]


# Answers


class UserAnswer(BaseModel):
    """An answer for a user."""

    user: str | None
    attribute: str | None


class ItemScore(BaseModel):
    """The score of an item."""

    item: str
    text: str | None
    score: float
    expected: float | None = Field(
        description="Expected grade, or probability of a yes; null for choices"
    )
    interval: list[float] | None = Field(description="90 % interval of the score")


class RankedItem(ItemScore):
    """An item with its rank."""

    rank: int
    picture: bool
    ranks: list[int] | None = Field(description="90 % interval of the rank")


class RankingResponse(UserAnswer):
    """Items, the best first."""

    generation: str
    total: int = Field(description="The number of items ranked")
    items: list[RankedItem]


class RankingsResponse(BaseModel):
    """One ranking for each request, in their order."""

    rankings: list[RankingResponse]


class ScoredItem(ItemScore):
    """An item with its score and standard error."""

    error: float | None


class Scores(UserAnswer):
    """Scores in the order of the items of the request."""

    generation: str
    scores: list[ScoredItem]


class ScoresBatch(BaseModel):
    """One list of scores for each request, in their order."""

    answers: list[Scores]


class LevelShares(BaseModel):
    """Each level's share of the variance of a user's scores."""

    consensus: float
    group: float
    personal: float


class LevelParts(LevelShares):
    """The contribution of each level to a score."""

    item: float


class FeaturePart(LevelShares):
    """The contribution of a feature to a score, by level, compared with the average item."""

    feature: str
    value: float
    average: float
    total: float


class Explained(UserAnswer, ScoredItem):
    """A score by level and feature, compared with the average item.

    Its sum with ``average_item``, the average item's score, is the score in rankings.
    """

    average_item: float
    levels: LevelParts
    features: list[FeaturePart]


class NextItems(UserAnswer):
    """Items whose labels are most informative."""

    items: list[dict[str, Any]]


class Profile(UserAnswer):
    """The position of a user among the others."""

    coordinates: list[float] = Field(description="On the map of users")
    school: int | None = Field(description="The most probable school; null if none are separate")
    school_name: str | None
    membership: list[float] = Field(description="The probability of each school")
    level_shares: LevelShares
    labels: int = Field(description="The number of items that the user labelled")


class View(BaseModel):
    """A user's profile, ranking, and next items to ask about."""

    profile: Profile
    ranking: RankingResponse
    ask: NextItems


class Created(BaseModel):
    """A new user, and a token for their data, which is shown once."""

    user: str
    token: str


class Stored(BaseModel):
    """The number of labels stored."""

    user: str
    stored: int
    labels: int = Field(description="The number of the user's labels now")


class StoredLabel(BaseModel):
    """A label, and its time."""

    item: str
    attribute: str | None
    text: str | None
    label: bool | float | str
    at: float


class StoredLabels(BaseModel):
    """The stored labels of a user, the oldest first."""

    user: str
    labels: list[StoredLabel]


class StoredData(StoredLabels):
    """All stored data of a user."""

    created: float | None
    in_model: bool = Field(description="Whether the model was fitted to their labels")


class Deleted(BaseModel):
    """The number of deleted labels."""

    user: str
    labels: int
    model: str = Field(description="The effect on the model")


class Facts(BaseModel):
    """Facts, in fields that depend on the operation."""

    model_config = ConfigDict(extra="allow")


class Refresh(BaseModel):
    """The result of the last refit."""

    running: bool
    last: str | None
    generation: str
