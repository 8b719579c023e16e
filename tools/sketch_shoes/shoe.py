"""What a shoe is: its parameters, in lengths of a foot."""

from dataclasses import dataclass, field

Colour = tuple[float, float, float]


@dataclass(frozen=True)
class Strap:
    """A strap over the foot, from the sole at ``base`` to the instep at ``top``.

    Places run from 0 (back of the heel) to 1 (tip of the toe).
    """

    base: float
    top: float
    width: float


@dataclass(frozen=True)
class Shoe:
    """The parameters of a shoe in side view; lengths are shares of a foot's length.

    Attributes
    ----------
    kind : str
        What it was drawn as: "pump", "sneaker", ...
    heel, heel_top, heel_tip : float
        How far the heel lifts the foot; the heel's width where it meets the sole, and at
        the ground. The back of the tip is ``heel_set`` from the back of the shoe.
    wedge : bool
        Whether the sole fills all of the room between foot and ground.
    platform, sole : float
        Thickness under the ball of the foot, and of the outsole.
    point, bulk : float
        How pointed the toe is (0 round, 1 a needle), and how high its box.
    front, rear : float
        Where the upper ends: 1 and 0 are closed; between, toes or heel are free.
    back, side, throat : float
        Height of the upper at the heel, at its lowest along the side, and the place where
        it first covers the foot.
    shaft, flare : float
        How far a boot rises above the foot-bed (0 for shoes), and how wide it is at the top.
    counter : float
        Height of a separate heel cup of a sandal.
    straps : tuple of Strap
    ankle_strap, sling : bool
    thong : bool
    laces : int
        Rungs of laces.
    trim : str
        Seams that belong to a kind: "sneaker", "oxford", "loafer", ...
    ornament, ornament_size, studs : str, float, int
    material, pattern : str
    colours : dict from part to red, green, blue in 0..1
    seed : int
        Shifts textures.
    """

    kind: str = "pump"
    heel: float = 0.2
    heel_top: float = 0.2
    heel_tip: float = 0.04
    heel_set: float = 0.05
    wedge: bool = False
    platform: float = 0.0
    sole: float = 0.02
    point: float = 0.5
    bulk: float = 0.11
    front: float = 1.0
    rear: float = 0.0
    back: float = 0.2
    side: float = 0.1
    throat: float = 0.7
    shaft: float = 0.0
    flare: float = 0.3
    counter: float = 0.0
    straps: tuple[Strap, ...] = ()
    ankle_strap: bool = False
    sling: bool = False
    thong: bool = False
    laces: int = 0
    trim: str = "plain"
    ornament: str = "none"
    ornament_size: float = 0.06
    studs: int = 0
    material: str = "leather"
    pattern: str = "plain"
    colours: dict[str, Colour] = field(default_factory=dict)
    seed: int = 0
