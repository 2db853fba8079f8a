"""Any LlamaIndex embedding behind our port."""

from __future__ import annotations

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr

from ..errors import ModelError
from .base import Kind, Matrix, TextEmbedder


class LlamaEmbedder(TextEmbedder):
    """Wraps a ``BaseEmbedding`` of another package.

    Args:
        inner: the embedding.
        dimension: of its vectors; found by embedding one word where None.

    Raises:
        ModelError: its vectors change their length, or are not finite.
    """

    inner: BaseEmbedding
    _dimension: int | None = PrivateAttr(default=None)

    def __init__(self, inner: BaseEmbedding, *, dimension: int | None = None) -> None:
        super().__init__(inner=inner, model_name=inner.model_name, embed_batch_size=inner.embed_batch_size)
        self._dimension = dimension

    @property
    def identity(self) -> str:
        """Class and model name of the wrapped embedding."""
        return f"{self.inner.class_name()}/{self.inner.model_name}"

    @property
    def dimension(self) -> int:
        """As given or as found."""
        if self._dimension is None:
            self._dimension = len(self.inner.get_text_embedding("pain"))
        return self._dimension

    def encode(self, texts: list[str], kind: Kind = "passage") -> Matrix:
        """Embed with the wrapped model's query or text side. See :meth:`TextEmbedder.encode`."""
        out = np.zeros((len(texts), self.dimension), np.float32)
        filled = [place for place, text in enumerate(texts) if text.strip()]
        if not filled:
            return out
        wanted = [texts[place] for place in filled]
        if kind == "query":
            rows = [self.inner.get_query_embedding(text) for text in wanted]
        else:
            rows = self.inner.get_text_embedding_batch(wanted)
        if any(len(row) != self.dimension for row in rows):
            raise ModelError(f"{self.identity}: a vector is not {self.dimension} long, as its first one was")
        vectors = np.asarray(rows, np.float32)
        if not np.isfinite(vectors).all():
            raise ModelError(f"{self.identity}: a vector holds values that are not finite")
        out[filled] = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return out
