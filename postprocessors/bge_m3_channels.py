"""BGE-M3's dense, learned-sparse and ColBERT scores as further channels over retrieved records."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from llama_index.core.bridge.pydantic import Field, PrivateAttr, model_validator
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
from scipy import sparse

from ..models.base import Matrix
from ..models.bge import BgeM3Embedder, M3Encoding, colbert_score, sparse_scores
from ..query import ClinicalQuery
from ..records.schema import View
from ..retrievers.multi_view import query_views

CHANNEL = "bge_m3"
_EXPLAINING = ("channel_scores", "fused")
_MB = 1 << 20


@dataclass(frozen=True)
class _Encoded:
    """One text: ``[dimension]``, ``[1, vocabulary]`` and ``[tokens, dimension]``."""

    dense: npt.NDArray[np.float32]
    sparse: sparse.csr_matrix
    colbert: Matrix

    @classmethod
    def row(cls, full: M3Encoding, place: int) -> Self:
        # copies: a slice would keep its whole padded batch alive
        return cls(full.dense[place].copy(), full.sparse[place], full.colbert[place].copy())

    @property
    def size(self) -> int:
        row = self.sparse
        return int(sum(part.nbytes for part in (self.dense, self.colbert, row.data, row.indices, row.indptr)))


class BgeM3ChannelReranker(BaseNodePostprocessor):
    """Three BGE-M3 channels beside those that found the records, from one pass over case and records.

    A record's score becomes the weighted mean of the score it came with and of three channels, each in 0..1,
    so it stays in 0..1 itself:

    - ``dense``: cosine of the two texts, nothing below 0;
    - ``sparse``: learned-sparse match, divided by the match of the case with itself, nothing above 1;
    - ``colbert``: mean over the case's tokens of the best cosine in the record, clipped to 0..1.

    Metadata: ``channel_scores["bge_m3"]`` holds the three; ``fused`` keeps the score from before, unless it
    is there already. The case is read as the retriever reads it, without its diagnosis. Nodes stay
    as they are where nothing is asked. Records are encoded once: the latest stay in memory, by their text.

    Dense, sparse and ColBERT are weighted 0.4 : 0.2 : 0.4, as in the examples of the model's authors (theirs
    leave the sparse match as it is); that the three together count as much as the score from before, and the
    scales, are ours. The level of the scores moves: a threshold on them has to be set anew.

    Example:
        >>> reranker = BgeM3ChannelReranker(embedder=BgeM3Embedder("/models/bge-m3"))  # doctest: +SKIP
        >>> nodes = reranker.postprocess_nodes(retriever.retrieve(query), query)       # doctest: +SKIP

    Attributes:
        embedder: of case and records; need not be the one that the index was built with.
        fused_weight: of the score that a record comes with. Only the ratio of the four weights counts.
        dense_weight: of the dense channel.
        sparse_weight: of the learned-sparse channel.
        colbert_weight: of the ColBERT channel.
        cache_mb: MiB of encoded records kept; ColBERT takes some 4 KiB a token. 0 keeps none.
    """

    embedder: BgeM3Embedder = Field(exclude=True)
    fused_weight: float = Field(default=1.0, ge=0, allow_inf_nan=False)
    dense_weight: float = Field(default=0.4, ge=0, allow_inf_nan=False)
    sparse_weight: float = Field(default=0.2, ge=0, allow_inf_nan=False)
    colbert_weight: float = Field(default=0.4, ge=0, allow_inf_nan=False)
    cache_mb: int = Field(default=256, ge=0)

    _kept: OrderedDict[bytes, _Encoded] = PrivateAttr(default_factory=OrderedDict)
    _kept_bytes: int = PrivateAttr(default=0)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    @model_validator(mode="after")
    def _weighs_something(self) -> Self:
        if not self._weights().any():
            msg = "all four weights are 0; give at least one channel or the fused score a weight"
            raise ValueError(msg)
        return self

    @classmethod
    def class_name(cls) -> str:
        """As LlamaIndex names it."""
        return "BgeM3ChannelReranker"

    def _weights(self) -> npt.NDArray[np.float64]:
        return np.array([self.fused_weight, self.dense_weight, self.sparse_weight, self.colbert_weight])

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        case = "" if query_bundle is None else _case_text(query_bundle)
        if not nodes or not case:
            return nodes
        query, found = self._encode(
            case, [one.node.get_content(metadata_mode=MetadataMode.NONE) for one in nodes]
        )
        channels = _channels(query, found)
        before = np.array([one.score or 0.0 for one in nodes], np.float64)
        weights = self._weights()
        scores = (np.column_stack([before, channels]) * (weights / weights.sum())).sum(axis=1)
        for place, one in enumerate(nodes):
            metadata = one.node.metadata
            metadata.setdefault("fused", float(before[place]))
            dense, lexical, late = channels[place].tolist()
            metadata["channel_scores"] = {
                **(metadata.get("channel_scores") or {}),
                CHANNEL: {"dense": dense, "sparse": lexical, "colbert": late},
            }
            for hidden in (one.node.excluded_llm_metadata_keys, one.node.excluded_embed_metadata_keys):
                hidden.extend(key for key in _EXPLAINING if key not in hidden)
            one.score = float(scores[place])
        return sorted(nodes, key=lambda one: -(one.score or 0.0))  # stable: equal ones keep their order

    def _encode(self, case: str, texts: list[str]) -> tuple[_Encoded, list[_Encoded]]:
        keys = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        with self._lock:
            known = {key: self._kept[key] for key in keys if key in self._kept}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        full = self.embedder.encode_full([case, *missing.values()])
        known |= {key: _Encoded.row(full, place) for place, key in enumerate(missing, start=1)}
        self._keep(known)
        return _Encoded.row(full, 0), [known[key] for key in keys]

    def _keep(self, used: dict[bytes, _Encoded]) -> None:
        with self._lock:
            for key, one in used.items():
                if key not in self._kept:
                    self._kept[key] = one
                    self._kept_bytes += one.size
                self._kept.move_to_end(key)
            while self._kept_bytes > self.cache_mb * _MB:
                self._kept_bytes -= self._kept.popitem(last=False)[1].size


def _case_text(query: QueryBundle) -> str:
    views, _ = query_views(query if isinstance(query, ClinicalQuery) else ClinicalQuery.of(query))
    return (views.get(View.GLOBAL) or "\n".join(views.values())).strip()


def _channels(query: _Encoded, records: list[_Encoded]) -> npt.NDArray[np.float64]:
    """``[records, 3]`` in 0..1: dense, sparse, ColBERT; equal texts have equal rows wherever they stand."""
    # a matrix product may round its rows differently, by their place
    dense = (np.stack([one.dense for one in records]) * query.dense).sum(axis=1)
    own = float(sparse_scores(query.sparse, query.sparse)[0, 0])
    lexical = sparse_scores(query.sparse, sparse.vstack([one.sparse for one in records], "csr"))[0]
    lexical = lexical / own if own > 0 else np.zeros_like(lexical)
    late = np.array([colbert_score(query.colbert, one.colbert) for one in records])
    return np.clip(np.column_stack([dense, lexical, late]).astype(np.float64).round(6), 0.0, 1.0)
