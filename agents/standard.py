"""The second lane: one prompt with the evidence."""

from __future__ import annotations

from typing import ClassVar

from .reasoning import ReasoningEngine


class StandardEngine(ReasoningEngine):
    """Asks for three ranked diagnoses, each with the records that support it (MAP-RAG's second lane)."""

    name: ClassVar[str] = "standard"
    deep: ClassVar[bool] = False
