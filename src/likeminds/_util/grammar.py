"""The grammar of what is said to people: counts and lists of things, and the crowd's verb.

People like items, agree with them, or find them offensive: whatever is said about a crowd is said
with its verb, conjugated for one person and for many.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

# Verbs that say what something is taken for: "find it offensive".
_TAKEN_FOR = (
    *("find", "consider", "judge", "call", "deem", "think", "believe", "see", "rate", "regard"),
)
_MODAL = ("would", "will", "can", "could", "should", "might", "may", "must")
_IRREGULAR = {"be": ("is", "are"), "have": ("has", "have"), "do": ("does", "do")}
# Who does these things wants what is described; other verbs say nothing about wishes.
_WISHING = (
    *("like", "love", "enjoy", "want", "prefer", "choose", "pick", "select", "buy", "purchase"),
    *("take", "order", "book", "use", "watch", "read", "eat", "drink", "wear", "recommend", "rent"),
)
_OPPOSITES = {"like": "dislike", "agree with": "disagree with", "approve of": "disapprove of"}
# Things that one does more or less; others are done more or less readily.
_BY_DEGREES = (
    *("like", "love", "enjoy", "want", "prefer", "hate", "fear", "trust", "admire", "respect"),
    *("be", "agree", "disagree", "approve", "worry", "care", "believe", "value", "need", "support"),
)
# What labels, attributes and columns are called by those who agree, or buy, ...
_KNOWN = {
    **dict.fromkeys(("vote", "votes"), "agree with"),
    **dict.fromkeys(("agree", "agreement", "agrees", "agreed", "endorse"), "agree with"),
    **dict.fromkeys(("buy", "buys", "bought", "purchase", "purchased", "would buy"), "would buy"),
    **dict.fromkeys(("choice", "chosen", "chose", "choose", "chooses", "selected"), "choose"),
    **dict.fromkeys(("like", "likes", "liked"), "like"),
    **dict.fromkeys(("prefer", "preferred"), "prefer"),
    **dict.fromkeys(("watch", "watched", "would watch"), "would watch"),
    **dict.fromkeys(("click", "clicked"), "click on"),
    **dict.fromkeys(("read", "would read"), "would read"),
    **dict.fromkeys(("recommend", "recommended", "would recommend"), "would recommend"),
}
# Endings of adjectives, nouns that have them, too, and adjectives without any.
_ADJECTIVE = re.compile(r"[a-z]{2,}(able|ible|tive|sive|ful|ous|ical|(ast|ant|ist|mat|et)ic|less)")
_NO_ADJECTIVES = frozenset(
    """
    table vegetable variable bible narrative motive native objective perspective alternative
    initiative detective executive relative statistic characteristic critic aesthetic topic
    """.split()  # noqa: SIM905 - words, not code
)
_ADJECTIVES = frozenset(
    """
    arrogant attractive beautiful biased big black blue bold boring bright brown cheap clean
    clear clever closed cluttered cold comfy cool correct cosy crazy credible cruel curvy
    cute dangerous dark dirty easy elegant ethical evil expensive extreme fair fake
    feminine formal fresh friendly funny genuine good green happy hard harsh hateful healthy
    helpful hostile important insulting intelligent interesting kind large legal likely loud
    lovely mean modern moral nasty natural neutral new nice odd offensive old open ornate
    permissible pink plain pleasant pointy polite pretty profane quiet rare racist real red
    relevant rich rude rustic sad safe scary sensitive serious sexist sexy sharp shiny short
    silly simple small smart soft sporty strange strong stupid stylish subtle sweet tall
    tasty thin threatening tough toxic trustworthy ugly unfair urgent useful vague
    violent vulgar warm weak weird white wide wise worthy wrong young
    """.split()  # noqa: SIM905 - words, not code
)
# Nouns that are made from adjectives, by their endings.
_NOUNS = {
    "iveness": "ive",
    "fulness": "ful",
    "ousness": "ous",
    "ability": "able",
    "ibility": "ible",
    "icity": "ic",
}


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun, in the singular or the plural.

    Examples
    --------
    >>> counted(1, "label"), counted(2000, "person", "people")
    ('1 label', '2,000 people')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def signed(value: float, digits: int = 3) -> str:
    """Return a number with its sign, and without one where it is zero as it is written.

    Examples
    --------
    >>> signed(-0.0001), signed(0.0312)
    ('0.000', '+0.031')
    """
    shown = f"{value:+.{digits}f}"
    return shown if float(shown) else shown[1:]


def written_grade(grade: float | str) -> str:
    """Return a grade as written: a word as it is, a number with one decimal.

    Examples
    --------
    >>> written_grade("good"), written_grade(4.25)
    ('good', '4.2')
    """
    return grade if isinstance(grade, str) else f"{grade:.1f}"


def join_words(words: Sequence[str]) -> str:
    """Return words as a list in a sentence.

    Examples
    --------
    >>> join_words(["tea", "milk", "water"])
    'tea, milk and water'
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


@dataclass(frozen=True)
class Verb:
    """A verb with a place for its object.

    Attributes
    ----------
    words : str
        The infinitive, and what belongs to it; the object stands where "it" stands.

    Examples
    --------
    >>> finds = Verb.of("finds offensive")
    >>> finds.words, finds.one("the joke"), finds.many()
    ('find it offensive', 'finds the joke offensive', 'find offensive')
    >>> finds.one_not("it"), finds.would(), finds.most()
    ('does not find it offensive', 'would find it offensive', 'finds most offensive')
    >>> Verb.of("agree with").many_not("tea"), Verb.of("would buy").one("tea")
    ('disagree with tea', 'would buy tea')
    """

    words: str

    @classmethod
    def of(cls, said: "str | Verb | None") -> "Verb":
        """Read a verb as somebody wrote it: like, likes, find offensive, would give it a star."""
        if isinstance(said, Verb):
            return said
        words = ("like" if said is None else said).split()
        if words[:1] == ["to"]:
            words = words[1:]
        if not words:
            raise ValueError(
                'A verb says what people do with items, as in "like" or "find offensive", '
                f"not {said!r}."
            )
        words[0] = _infinitive(words[0].lower())
        if "it" not in words[1:]:
            words.insert(_place_of_object(words), "it")
        return cls(" ".join(words))

    @property
    def _parts(self) -> tuple[str, str, str]:
        """The word that is conjugated, what stands before the object, and what stands after."""
        first, *rest = self.words.split()
        place = rest.index("it")
        return first, " ".join(rest[:place]), " ".join(rest[place + 1 :])

    @property
    def _core(self) -> str:
        """The verb itself, without its modal one and its object."""
        words = self.words.split()
        return words[1] if words[0] in _MODAL and words[1] != "it" else words[0]

    @property
    def wishes(self) -> bool:
        """Whether who does it wants what it is done with."""
        return self._core in _WISHING and not self._parts[2]

    def one(self, what: str = "") -> str:
        """Say that somebody does it: "finds what offensive"."""
        return self._said(_third(self._parts[0]), what)

    def many(self, what: str = "") -> str:
        """Say that several people do it: "find what offensive"."""
        return self._said(_plural(self._parts[0]), what)

    def one_not(self, what: str = "") -> str:
        """Say that somebody does not."""
        return self._not(what, many=False)

    def many_not(self, what: str = "") -> str:
        """Say that several people do not."""
        return self._not(what, many=True)

    def would(self, what: str = "it") -> str:
        """Say that people would do it."""
        return self.conditional.many(what)

    @property
    def conditional(self) -> "Verb":
        """The verb for items that a person has not labelled: "would like".

        Examples
        --------
        >>> LIKE.conditional.most(), Verb.of("would buy").conditional.most()
        ('would like best', 'would buy most readily')
        """
        return self if self._parts[0] in _MODAL else Verb(f"would {self.words}")

    def question(self, what: str = "this") -> str:
        """Ask somebody whether they do it.

        Examples
        --------
        >>> Verb.of("find offensive").question(), Verb.of("would buy").question()
        ('Do you find this offensive?', 'Would you buy this?')
        """
        first, before, after = self._parts
        if first in _MODAL or first == "be":
            first, start = "", f"{_plural(first).capitalize()} you"
        else:
            start = "Do you"
        return " ".join(part for part in (start, first, before, what, after) if part) + "?"

    def most(self, *, many: bool = False) -> str:
        """Say what somebody does before the names of what they do it with most."""
        return self._graded("", "most", "best", many=many)

    def more(self, what: str, *, many: bool = False, even: bool = False) -> str:
        """Say that somebody does it more, or even more."""
        degree = "even more" if even else "more"
        return self._graded(what, degree, degree, many=many)

    def more_than_others(self, what: str) -> str:
        """Say that somebody does it more than others do."""
        return f"{self.more(what)} than others"

    def less(self, what: str, *, many: bool = False) -> str:
        """Say that somebody does it less."""
        return self._graded(what, "less", "less", many=many)

    def _graded(self, what: str, degree: str, of_liking: str, *, many: bool) -> str:
        after = self._parts[2]
        if after and self._core in _TAKEN_FOR:
            return Verb(f"{self.words.removesuffix(after)}{degree} {after}")._did(what, many=many)
        said = self._did(what, many=many)
        if self._core == "like":
            return f"{said} {of_liking}"
        return f"{said} {degree}" if self._core in _BY_DEGREES else f"{said} {degree} readily"

    def _did(self, what: str, *, many: bool) -> str:
        return self.many(what) if many else self.one(what)

    def _not(self, what: str, *, many: bool) -> str:
        first, before, after = self._parts
        opposite = _OPPOSITES.get(f"{first} {before}".strip())
        if opposite is not None and not after:
            return Verb.of(opposite)._did(what, many=many)
        if first in _MODAL or first == "be":
            return self._said(f"{_plural(first) if many else _third(first)} not", what)
        return self._said(f"{'do' if many else 'does'} not {first}", what)

    def _said(self, head: str, what: str) -> str:
        _, before, after = self._parts
        return " ".join(part for part in (head, before, what, after) if part)


LIKE = Verb("like it")
# How the names of features of texts begin; the words that a text has follow.
TEXT_NAME = "text: "


def read_verb(said: str | None) -> str | None:
    """Return a verb as it was given, or refuse what is none; {} in it is an attribute.

    Examples
    --------
    >>> read_verb("find {}"), read_verb(None)
    ('find {}', None)
    """
    if said is None:
        return None
    if not isinstance(said, str):
        raise TypeError(f'verb must be a text such as "find offensive", not {said!r}.')
    Verb.of(said)
    return said


def guess_verb(*names: object) -> str | None:
    """Guess what people do with items, from names of attributes, labels and columns.

    Parameters
    ----------
    *names
        What labels, the attribute, or the column of labels are called; the first that says
        something counts.

    Returns
    -------
    str or None
        None where no name says anything.

    Examples
    --------
    >>> guess_verb("label", "offensiveness"), guess_verb("agree"), guess_verb("would_buy")
    ('find offensive', 'agree with', 'would buy')
    >>> guess_verb("comfortable"), guess_verb("rating")
    ('find comfortable', None)
    """
    for name in names:
        if not isinstance(name, str):
            continue
        words = " ".join(re.split(r"[\s_\-]+", name.strip().lower())).removeprefix("is ")
        if words in _KNOWN:
            return _KNOWN[words]
        adjective = _as_adjective(words)
        if adjective is not None:
            return f"find {adjective}"
    return None


def _as_adjective(word: str) -> str | None:
    for noun, ending in _NOUNS.items():
        if word.endswith(noun) and len(word) > len(noun) + 2:
            return word.removesuffix(noun) + ending
    known = word in _ADJECTIVES or (_ADJECTIVE.fullmatch(word) and word not in _NO_ADJECTIVES)
    return word if known else None


def _place_of_object(words: list[str]) -> int:
    """Return where the object stands: at the end, but before what it is taken for."""
    verb = 1 if words[0] in _MODAL else 0
    return verb + 1 if words[verb : verb + 1] and words[verb] in _TAKEN_FOR else len(words)


def _third(verb: str) -> str:
    """Return what one person does."""
    if verb in _MODAL:
        return verb
    if verb in _IRREGULAR:
        return _IRREGULAR[verb][0]
    if verb.endswith("y") and verb[-2:-1] not in set("aeiou"):
        return f"{verb[:-1]}ies"
    return f"{verb}es" if verb.endswith(("s", "x", "zz", "ch", "sh", "o")) else f"{verb}s"


def _plural(verb: str) -> str:
    return _IRREGULAR[verb][1] if verb in _IRREGULAR else verb


def _infinitive(word: str) -> str:
    """Return the infinitive of what one person does, or many do."""
    for verb, forms in _IRREGULAR.items():
        if word in forms:
            return verb
    if word in _MODAL or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "xes", "zzes", "ches", "shes", "oes")):
        return word[:-2]
    return word[:-1]
