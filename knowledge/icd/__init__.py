"""ICD-10 code systems and the coding cascade."""

from .cascade import IcdCascade
from .match import IcdCandidate, IcdMatch, Neighbour, Stage
from .sources import load_code_system
from .system import CodeSystem

__all__ = ["CodeSystem", "IcdCandidate", "IcdCascade", "IcdMatch", "Neighbour", "Stage", "load_code_system"]
