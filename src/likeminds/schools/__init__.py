"""Schools of thought: who thinks alike, on which features, and who stands alone."""

from likeminds.schools.explanations import Explanation
from likeminds.schools.find import find_schools
from likeminds.schools.items import JudgedItem
from likeminds.schools.result import Axis, School, Schools
from likeminds.schools.school_soft_labels import SoftLabels

__all__ = ["Axis", "Explanation", "JudgedItem", "School", "Schools", "SoftLabels", "find_schools"]
