"""The third lane: chain of thought over evidence and knowledge."""

from __future__ import annotations

from typing import ClassVar

from .reasoning import ReasoningEngine


class DeepEngine(ReasoningEngine):
    """Problem, differential with findings for and against, then the answer (MAP-RAG's third lane)."""

    name: ClassVar[str] = "deep"
    deep: ClassVar[bool] = True
