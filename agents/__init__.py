"""Who answers: the diagnosis engines of the three lanes."""

from .base import DiagnosisEngine
from .deep import DeepEngine
from .standard import StandardEngine
from .vote import VoteEngine

__all__ = ["DeepEngine", "DiagnosisEngine", "StandardEngine", "VoteEngine"]
