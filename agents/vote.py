"""The first lane: the records answer by themselves."""

from __future__ import annotations

from typing import ClassVar

from ..query import ClinicalAnswer
from .base import DiagnosisEngine, Gathered


class VoteEngine(DiagnosisEngine):
    """Similarity-weighted vote of the nearest records, with quotes; no language model (MAP-RAG's first lane).

    Example:
        >>> engine = VoteEngine(retriever=retriever)            # doctest: +SKIP
        >>> engine.query("Red painful eye, IOP 42 mmHg").details.diagnoses[0].name  # doctest: +SKIP
        'Acute angle-closure glaucoma'
    """

    name: ClassVar[str] = "vote"

    def _answer(self, gathered: Gathered) -> ClinicalAnswer:
        return self._vote(gathered)
