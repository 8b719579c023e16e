"""Schools of thought: groups of users who rank alike, their features, and outliers."""

from likeminds.schools.explanations import Explanation
from likeminds.schools.find import find_schools
from likeminds.schools.population import JudgedItem
from likeminds.schools.result import Axis, School, Schools
from likeminds.schools.school_soft_labels import SoftLabels

__all__ = ["Axis", "Explanation", "JudgedItem", "School", "Schools", "SoftLabels", "find_schools"]
