"""Similar cases by four views and two channels, weighted by department (MAP-RAG)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from ..errors import IndexStoreError, InputError
from ..indexes.cases import CaseIndex, CasePayload, CaseReader, Channel, ChannelScores
from ..knowledge.labels import label_of
from ..knowledge.weights import ViewWeights
from ..language.views import split_views
from ..models.base import TextEmbedder
from ..query import ClinicalQuery
from ..records.schema import VIEWS, OutpatientRecord, View
from ..records.views import views_of
from .ordering import best, tie_key

_NOT_FOR_MODELS = (
    "record_id", "label", "diagnoses", "channel_scores", "weights", "fused", "prior", "rules", "score_parts",
)  # fmt: skip


_VIEW_NAMES = tuple(view.value for view in VIEWS)
_DENSE, _SPARSE = (channel.name.lower() for channel in Channel)


class MultiViewHybridRetriever(BaseRetriever):
    """A LlamaIndex retriever over a :class:`CaseIndex`.

    A record's score is the weighted sum of its eight channel scores, so it lies in 0..1. Each node explains
    itself: its metadata hold the channel scores, the weights, and who the record is about. Source: MAP-RAG;
    the absolute scales and the union of candidates are ours.

    Args:
        index: to search.
        embedder: of queries; the index's own where None.
        weights: by department; the shipped table where None.
        top_k: nodes a query.
        candidates: records that each channel proposes.
        seed: of the order of equal scores.

    Raises:
        IndexStoreError: the index was built with another embedder.
    """

    def __init__(
        self,
        index: CaseIndex,
        *,
        embedder: TextEmbedder | None = None,
        weights: ViewWeights | None = None,
        top_k: int = 30,
        candidates: int = 100,
        seed: int = 0,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        self.index = index
        self.weights = ViewWeights.shipped() if weights is None else weights
        self._embedder = embedder
        if embedder is not None and embedder.identity != index.embedder_identity:
            raise IndexStoreError(
                f"{index.path}: built with embedder {index.embedder_identity}, "
                f"but {embedder.identity} is given; give that one or rebuild the index"
            )
        self.top_k = top_k
        self.candidates = candidates
        self.seed = seed
        super().__init__(callback_manager=callback_manager)

    @classmethod
    def from_defaults(cls, index: CaseIndex, **options: Any) -> Self:
        """Over an opened index, with the shipped weights."""
        return cls(index, **options)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        query = query_bundle if isinstance(query_bundle, ClinicalQuery) else ClinicalQuery.of(query_bundle)
        cases = self.index.snapshot()
        views, headed = query_views(query)
        encoded = cases.encode_query(views, query.language, vectors=self._vectors(views))
        found = cases.search(encoded, candidates=self.candidates, exclude=query.record_ids)
        weights = self.weights.row(query.department, found.present, headed=headed)
        fused = fuse(found, weights)

        def order(place: int) -> bytes:
            return tie_key(self.seed, query.query_str, cases.ids[int(found.rows[place])])

        places = best(fused, self.top_k, order)
        return [
            case_node(
                cases,
                int(found.rows[place]),
                score=float(fused[place]),
                channels=found.scores[place],
                weights=weights,
            )
            for place in places.tolist()
        ]

    def _vectors(self, views: Mapping[View, str]) -> dict[View, npt.NDArray[np.float32]] | None:
        if self._embedder is None:
            return None
        return dict(zip(views, self._embedder.encode(list(views.values()), "passage"), strict=True))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


def query_views(query: ClinicalQuery) -> tuple[dict[View, str], bool]:
    """The views of a case without its diagnosis, and whether headings or fields told them apart.

    Raises:
        InputError: a view that does not exist.
    """
    if query.views is None:
        split = split_views(query.query_str, query.language)
        return {View(name): text for name, text in split.views.items() if text.strip()}, split.headed
    unknown = [name for name in query.views if name not in set(VIEWS)]
    if unknown:
        raise InputError(f"unknown view {unknown[0]!r}; known are {', '.join(VIEWS)}")
    given = {View(name): text for name, text in query.views.items() if text.strip()}
    if not given:
        return {}, True
    return views_of(OutpatientRecord(id="query", views=given, language=query.language)), True


def fuse(found: ChannelScores, weights: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Weighted sum ``[n]`` of channel scores ``[n, 4, 2]``."""
    flat = found.scores.reshape(len(found.rows), weights.size)
    return np.asarray(flat @ np.asarray(weights, np.float32).ravel(), np.float32)


def case_node(
    cases: CaseReader,
    row: int,
    *,
    score: float,
    channels: npt.NDArray[np.float32],
    weights: npt.NDArray[np.float32],
) -> NodeWithScore:
    """A record as evidence, with what brought it in."""
    payload = cases.payload(row)
    metadata = _describe(payload) | {
        "channel_scores": _by_view(channels),
        "weights": _by_view(weights),
        "fused": score,
    }
    node = TextNode(
        id_=payload.id,
        text=payload.text,
        metadata=metadata,
        excluded_embed_metadata_keys=list(metadata),
        excluded_llm_metadata_keys=list(_NOT_FOR_MODELS),
    )
    return NodeWithScore(node=node, score=score)


def _describe(payload: CasePayload) -> dict[str, Any]:
    main = payload.diagnoses[0] if payload.diagnoses else None
    return {
        "record_id": payload.id,
        "department": payload.department,
        "date": payload.date.isoformat() if payload.date else None,
        "age": payload.age,
        "sex": payload.sex,
        "language": payload.language,
        "diagnosis": main.name if main else None,
        "code": main.code if main else None,
        "label": label_of(main.name, main.code) if main else None,
        "diagnoses": [{"name": d.name, "code": d.code} for d in payload.diagnoses],
    }


def _by_view(values: npt.NDArray[np.float32]) -> dict[str, dict[str, float]]:
    rows = values.astype(float).round(6).tolist()
    return {
        view: {_DENSE: row[Channel.DENSE], _SPARSE: row[Channel.SPARSE]}
        for view, row in zip(_VIEW_NAMES, rows, strict=True)
    }
