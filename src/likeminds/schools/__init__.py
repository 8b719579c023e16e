"""Schools of thought: who thinks alike, on which features, and who stands alone."""

from likeminds.schools.explaining import Explanation
from likeminds.schools.finding import find_schools
from likeminds.schools.found import Axis, School, Schools
from likeminds.schools.items import Judged
from likeminds.schools.soft_labels import SoftLabels

__all__ = ["Axis", "Explanation", "Judged", "School", "Schools", "SoftLabels", "find_schools"]
