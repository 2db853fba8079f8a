"""The port every embedder stands behind."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import Literal

import numpy as np
import numpy.typing as npt
from llama_index.core.base.embeddings.base import BaseEmbedding

Kind = Literal["query", "passage"]
Matrix = npt.NDArray[np.float32]


class TextEmbedder(BaseEmbedding):
    """A LlamaIndex embedding that also gives whole matrices and says who it is."""

    @property
    @abstractmethod
    def identity(self) -> str:
        """Name and version; vectors of different identities are never compared."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Length of one vector."""

    @abstractmethod
    def encode(self, texts: list[str], kind: Kind = "passage") -> Matrix:
        """Embed texts into a float32 matrix ``[len(texts), dimension]`` of unit rows.

        Args:
            texts: may be empty, giving a ``[0, dimension]`` matrix; an empty string is a zero row.
            kind: some models embed questions and passages differently.

        Raises:
            ModelError: the model cannot be loaded.
        """

    def _get_query_embedding(self, query: str) -> list[float]:
        return [float(x) for x in self.encode([query], "query")[0]]

    def _get_text_embedding(self, text: str) -> list[float]:
        return [float(x) for x in self.encode([text], "passage")[0]]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return [[float(x) for x in row] for row in self.encode(texts, "passage")]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)
