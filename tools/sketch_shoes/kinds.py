"""Kinds of shoes, as ranges of their parameters.

A pair of numbers is a range to draw from evenly; a list is a choice; anything else is fixed.
"""

from typing import Any

from tools.sketch_shoes.shoe import Strap

Recipe = dict[str, Any]

_DRESSY = ["leather", "leather", "patent", "suede", "fabric", "metallic"]
_STURDY = ["leather", "leather", "suede"]
_PARTY = ["none", "none", "bow", "flower", "buckle", "jewel"]

_PUMP: Recipe = {
    "heel": (0.16, 0.36), "heel_top": (0.15, 0.2), "heel_tip": (0.03, 0.07),
    "heel_set": (0.03, 0.07),
    "point": (0.25, 1.0), "bulk": (0.1, 0.12), "back": (0.17, 0.22), "side": (0.07, 0.11),
    "throat": (0.64, 0.74), "material": _DRESSY, "ornament": _PARTY,
    "platform": [0.0, 0.0, 0.0, 0.05],
}  # fmt: skip
_SANDAL: Recipe = {
    "front": 0.0, "rear": 1.0, "point": (0.0, 0.35), "sole": (0.02, 0.03),
    "material": ["leather", "leather", "metallic", "suede", "patent"],
    "ornament": ["none", "none", "none", "flower", "jewel", "buckle", "bow"],
}  # fmt: skip
_BOOT: Recipe = {
    "throat": 0.42, "shaft": (0.75, 1.1), "flare": (0.35, 0.42), "heel_top": (0.2, 0.24),
    "heel_tip": (0.12, 0.2), "heel_set": (0.0, 0.02), "heel": (0.04, 0.16), "point": (0.1, 0.7),
    "bulk": (0.11, 0.13), "material": _STURDY, "sole": (0.02, 0.03), "trim": ["zip", "none"],
    "stud_odds": 0.06, "pattern_odds": 0.07,
}  # fmt: skip
_FLAT: Recipe = {
    "heel": (0.01, 0.03), "heel_top": 0.24, "heel_tip": 0.22, "heel_set": 0.005, "sole": 0.018,
    "point": (0.0, 0.8), "bulk": (0.09, 0.11), "back": (0.15, 0.2), "side": (0.06, 0.09),
    "throat": (0.68, 0.78), "material": _DRESSY,
}  # fmt: skip
_LACED: Recipe = {
    "throat": (0.4, 0.44), "back": (0.24, 0.28), "side": (0.19, 0.22), "point": (0.0, 0.2),
    "bulk": (0.12, 0.145), "stud_odds": 0.0,
}  # fmt: skip

# One evenly worn strap near the toes, one over the instep; more for gladiators.
_TWO = (Strap(0.80, 0.76, 0.07), Strap(0.56, 0.44, 0.05))
_THIN = (Strap(0.84, 0.80, 0.03), Strap(0.72, 0.70, 0.03))
_ONE = (Strap(0.80, 0.76, 0.06),)
_CROSSED = (Strap(0.86, 0.66, 0.045), Strap(0.64, 0.80, 0.045))
_MANY = tuple(Strap(base, base - 0.055, 0.03) for base in (0.86, 0.76, 0.66, 0.56, 0.46))

KINDS: dict[str, Recipe] = {
    "pump": _PUMP,
    "stiletto": _PUMP | {
        "heel": (0.3, 0.42), "heel_tip": (0.016, 0.022), "heel_top": (0.13, 0.16),
        "heel_set": (0.06, 0.09), "point": (0.6, 1.0), "platform": [0.0, 0.0, 0.06, 0.08],
    },
    "kitten heel": _PUMP | {
        "heel": (0.08, 0.14), "heel_tip": (0.02, 0.03), "heel_top": (0.13, 0.16), "heel_set": 0.05,
        "platform": 0.0,
    },
    "peep-toe": _PUMP | {
        "front": (0.88, 0.93), "point": (0.0, 0.25), "throat": (0.62, 0.68), "bulk": 0.12,
        "platform": [0.0, 0.04, 0.07], "ornament": ["none", "bow", "bow", "flower", "jewel"],
    },
    "slingback": _PUMP | {
        "rear": (0.42, 0.5), "sling": True, "throat": (0.66, 0.72), "heel": (0.1, 0.32),
        "platform": 0.0,
    },
    "mary jane": _PUMP | {
        "straps": [(Strap(0.5, 0.42, 0.035),), (Strap(0.46, 0.38, 0.03), Strap(0.58, 0.52, 0.03))],
        "heel": (0.04, 0.3), "heel_tip": (0.05, 0.13), "point": (0.0, 0.4), "side": (0.09, 0.11),
        "throat": (0.72, 0.78), "ornament": ["none", "none", "flower", "buckle"],
    },
    "mule": _PUMP | {
        "rear": (0.46, 0.56), "throat": (0.62, 0.7), "heel": (0.1, 0.32), "front": [1.0, 1.0, 0.9],
        "heel_tip": (0.02, 0.08),
    },
    "strappy sandal": _SANDAL | {
        "heel": (0.2, 0.4), "heel_top": (0.13, 0.17), "heel_tip": (0.018, 0.05),
        "heel_set": (0.04, 0.08), "straps": [_THIN, _ONE, _CROSSED, _MANY], "ankle_strap": True,
        "counter": [0.0, 0.3, 0.32], "platform": [0.0, 0.0, 0.05],
    },
    "flat sandal": _SANDAL | {
        "heel": (0.0, 0.03), "wedge": True, "sole": (0.025, 0.05),
        "straps": [_TWO, _CROSSED, _MANY, _THIN], "ankle_strap": [True, True, False],
        "counter": [0.0, 0.28],
    },
    "wedge sandal": _SANDAL | {
        "heel": (0.14, 0.32), "wedge": True, "platform": (0.03, 0.09),
        "straps": [_TWO, _CROSSED, _ONE],
        "ankle_strap": [True, True, False], "counter": [0.0, 0.28], "trim": ["none", "espadrille"],
    },
    "flip-flop": _SANDAL | {
        "heel": (0.0, 0.02), "wedge": True, "sole": (0.03, 0.055), "thong": True,
        "ornament": ["none", "none", "flower", "jewel"], "pattern_odds": 0.1,
    },
    "slide": _SANDAL | {
        "front": (0.86, 0.9), "rear": (0.5, 0.56), "throat": (0.6, 0.64), "wedge": True,
        "heel": (0.0, 0.05), "sole": (0.04, 0.07),
        "ornament": ["none", "none", "buckle", "pompon", "bow"],
    },
    "clog": {
        "heel": (0.06, 0.12), "heel_top": (0.27, 0.3), "heel_tip": (0.2, 0.24), "heel_set": 0.02,
        "platform": (0.05, 0.08), "sole": 0.03, "rear": (0.36, 0.42), "throat": (0.46, 0.52),
        "point": (0.0, 0.1), "bulk": (0.14, 0.16), "trim": "clog", "material": _STURDY,
        "ornament": ["none", "none", "buckle", "flower"],
    },
    "wedge": _PUMP | {
        "heel": (0.12, 0.28), "wedge": True, "platform": (0.02, 0.06), "point": (0.0, 0.4),
        "trim": ["plain", "espadrille", "espadrille"], "front": [1.0, 1.0, 0.92],
    },
    "espadrille": _FLAT | {
        "wedge": True, "sole": (0.045, 0.06), "trim": "espadrille", "material": "fabric",
        "point": (0.0, 0.2), "throat": (0.55, 0.62), "side": (0.1, 0.12), "pattern_odds": 0.5,
    },
    "ballet flat": _FLAT | {"ornament": ["none", "bow", "bow", "flower", "jewel", "buckle"]},
    "loafer": _FLAT | {
        "heel": (0.03, 0.06), "throat": (0.47, 0.52), "back": (0.2, 0.24), "side": (0.15, 0.17),
        "bulk": (0.12, 0.135), "point": (0.0, 0.4), "trim": "loafer", "sole": 0.025,
        "ornament": ["none", "tassel", "buckle", "fringe"],
        "material": ["leather", "suede", "patent"],
        "pattern_odds": 0.06,
    },
    "oxford": _LACED | {
        "heel": (0.03, 0.07), "heel_top": 0.25, "heel_tip": 0.23, "heel_set": 0.005, "sole": 0.025,
        "laces": [4, 5], "trim": "oxford", "point": (0.1, 0.55),
        "material": ["leather", "leather", "patent", "suede"],
        "pattern_odds": 0.03,
    },
    "sneaker": _LACED | {
        "heel": (0.02, 0.04), "wedge": True, "sole": (0.05, 0.075), "laces": [5, 6],
        "trim": "sneaker",
        "material": ["leather", "fabric", "suede"], "pattern_odds": 0.1,
    },
    "high-top": _LACED | {
        "heel": (0.0, 0.02), "wedge": True, "sole": (0.05, 0.065), "laces": [7, 8],
        "trim": "sneaker",
        "shaft": (0.36, 0.42), "flare": (0.27, 0.3), "material": ["fabric", "leather"],
        "pattern_odds": 0.15,
    },
    "ankle boot": _BOOT | {
        "shaft": (0.34, 0.48), "flare": (0.26, 0.31), "heel": (0.08, 0.32),
        "heel_tip": (0.03, 0.16),
        "heel_set": (0.01, 0.05), "ornament": ["none", "none", "buckle", "fringe"],
        "material": _DRESSY, "heel_top": (0.17, 0.23),
    },
    "chelsea boot": _BOOT | {
        "shaft": (0.4, 0.48), "flare": (0.27, 0.3), "heel": (0.03, 0.07), "heel_tip": 0.22,
        "trim": "chelsea",
    },
    "knee boot": _BOOT | {"ornament": ["none", "none", "buckle", "fringe"]},
    "heeled boot": _BOOT | {
        "heel": (0.22, 0.38), "heel_tip": (0.02, 0.07), "heel_top": (0.15, 0.19),
        "heel_set": (0.04, 0.08),
        "point": (0.5, 1.0), "material": _DRESSY, "ornament": ["none", "none", "buckle", "fringe"],
    },
    "cowboy boot": _BOOT | {
        "trim": "cowboy", "shaft": (0.65, 0.85), "heel": (0.09, 0.13), "heel_tip": (0.13, 0.15),
        "heel_set": (0.03, 0.045), "point": (0.7, 1.0), "pattern_odds": 0.08,
    },
    "rain boot": _BOOT | {
        "material": "patent", "heel": (0.02, 0.04), "heel_tip": 0.23, "point": (0.0, 0.1),
        "bulk": (0.14, 0.16),
        "shaft": (0.65, 0.85), "flare": (0.34, 0.38), "trim": "none", "pattern_odds": 0.3,
        "stud_odds": 0.0,
    },
    "fur boot": _BOOT | {
        "material": "suede", "heel": (0.01, 0.02), "wedge": True, "sole": (0.04, 0.05),
        "point": 0.0,
        "bulk": (0.15, 0.17), "shaft": (0.45, 0.75), "flare": (0.34, 0.38), "trim": "fur",
        "stud_odds": 0.0,
        "pattern_odds": 0.0,
    },
    "hiking boot": _LACED | {
        "heel": (0.02, 0.04), "wedge": True, "sole": (0.07, 0.085), "laces": [7, 8],
        "trim": "hiker",
        "shaft": (0.36, 0.46), "flare": (0.28, 0.32), "bulk": (0.14, 0.155),
        "material": ["leather", "suede"],
        "pattern_odds": 0.0,
    },
}  # fmt: skip
