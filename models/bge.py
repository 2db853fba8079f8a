"""BGE-M3 from a local folder through FlagEmbedding: dense, learned-sparse and ColBERT vectors."""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from scipy import sparse

from ..errors import ModelError
from .base import Kind, Matrix, TextEmbedder

_HEADS = ("colbert_linear.pt", "sparse_linear.pt")
_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
_PROBE_BYTES = 1 << 20
_log = logging.getLogger(__name__)


def stay_offline() -> None:
    """Keep the model libraries from asking a hub; called before they are imported."""
    for variable in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        os.environ[variable] = "1"
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def require_bge_extra() -> None:
    """Check that FlagEmbedding is installed.

    Raises:
        ModelError: it is not.
    """
    if importlib.util.find_spec("FlagEmbedding") is None:
        raise ModelError("BGE models need FlagEmbedding; install it with: pip install 'wardround[bge]'")


def require_files(path: Path, needed: tuple[str, ...], kind: str) -> Path:
    """Check that a local model folder is whole, since a missing one would be downloaded.

    Args:
        path: of the folder.
        needed: file names beside the weights.
        kind: of model, for the message.

    Returns:
        The file with the weights.

    Raises:
        ModelError: naming what is missing.
    """
    if not path.is_dir():
        raise ModelError(
            f"{path}: no such folder; give the local folder of a {kind} model (nothing is downloaded)"
        )
    missing = [name for name in needed if not (path / name).is_file()]
    weights = next((path / name for name in _WEIGHTS if (path / name).is_file()), None)
    if weights is None and not (path / "model.safetensors.index.json").is_file():
        missing.append(" or ".join(_WEIGHTS))
    if missing:
        raise ModelError(f"{path}: not a whole {kind} model; missing: {', '.join(missing)}")
    return weights or path / "model.safetensors.index.json"


@dataclass(frozen=True)
class M3Encoding:
    """What BGE-M3 makes of some texts.

    Attributes:
        dense: ``[n, dimension]`` float32, unit rows.
        sparse: ``[n, vocabulary]`` float32 CSR of learned term weights.
        colbert: one ``[tokens, dimension]`` float32 matrix of unit rows a text.
    """

    dense: Matrix
    sparse: sparse.csr_matrix
    colbert: list[Matrix]


class BgeM3Embedder(TextEmbedder):
    """BGE-M3 in a local folder; nothing is ever downloaded.

    Threads take turns. The folder must hold both heads (``colbert_linear.pt``, ``sparse_linear.pt``):
    without them FlagEmbedding would answer with random ones and say nothing.

    Args:
        path: of the model's folder.
        batch_size: texts a call.
        threads: of torch, on the CPU.
        max_length: tokens of one text; the rest is cut.
        device: ``"cpu"``, ``"cuda:0"``, …; the CPU where None.
        pooling: ``"cls"`` for BGE-M3; ``"mean"`` for another family in the same layout, such as E5.
        query_prefix: put before each question; E5 wants ``"query: "``.
        passage_prefix: put before each passage; E5 wants ``"passage: "``.

    Raises:
        ModelError: FlagEmbedding is not installed, or the folder is not whole.
    """

    model_name: str = "bge-m3"
    path: Path
    batch_size: int = Field(default=32, ge=1)
    threads: int = Field(default=2, ge=1)
    max_length: int = Field(default=1024, ge=8, le=8192)
    device: str | None = None
    pooling: Literal["cls", "mean"] = "cls"
    query_prefix: str = ""
    passage_prefix: str = ""

    _model: Any = PrivateAttr(default=None)
    _identity: str = PrivateAttr(default="")
    _dimension: int = PrivateAttr(default=0)
    _vocabulary: int = PrivateAttr(default=0)
    _lock: Any = PrivateAttr(default_factory=threading.RLock)

    def __init__(self, path: str | Path, **options: Any) -> None:
        super().__init__(path=Path(path), **options)
        weights = require_files(self.path, ("config.json", "tokenizer_config.json", *_HEADS), "BGE-M3")
        self._identity = f"bge-m3/{_fingerprint([weights, *(self.path / name for name in _HEADS)])}"
        if self.pooling != "cls" or self.passage_prefix:
            self._identity += f"/{self.pooling}/{self.passage_prefix}"

    @property
    def identity(self) -> str:
        """Name and a fingerprint of weights and heads."""
        return self._identity

    @property
    def dimension(self) -> int:
        """Of the model in the folder; 1024 for BGE-M3 itself."""
        self._loaded()
        return self._dimension

    @property
    def vocabulary(self) -> int:
        """Columns of the learned-sparse matrix."""
        self._loaded()
        return self._vocabulary

    def encode(self, texts: list[str], kind: Kind = "passage") -> Matrix:
        """Dense vectors. See :meth:`TextEmbedder.encode`."""
        prefix = self.query_prefix if kind == "query" else self.passage_prefix
        return self._run([prefix + text if text.strip() else "" for text in texts], full=False).dense

    def encode_full(self, texts: list[str]) -> M3Encoding:
        """Dense, learned-sparse and ColBERT vectors of texts, from one pass.

        Args:
            texts: may be empty; an empty string has zero rows and an empty ColBERT matrix.

        Raises:
            ModelError: the model cannot be loaded.
        """
        return self._run(texts, full=True)

    def _run(self, texts: list[str], *, full: bool) -> M3Encoding:
        model = self._loaded()
        filled = [place for place, text in enumerate(texts) if text.strip()]
        dense = np.zeros((len(texts), self._dimension), np.float32)
        colbert = [np.zeros((0, self._dimension), np.float32) for _ in texts]
        weights: list[dict[str, float]] = [{} for _ in texts]
        if filled:
            with self._lock:
                import torch  # noqa: PLC0415  # 9 s and an optional extra

                torch.set_num_threads(self.threads)
                made = model.encode(
                    [texts[place] for place in filled],
                    batch_size=self.batch_size,
                    max_length=self.max_length,
                    return_dense=True,
                    return_sparse=full,
                    return_colbert_vecs=full,
                )
            dense[filled] = np.asarray(made["dense_vecs"], np.float32)
            dense /= np.maximum(np.linalg.norm(dense, axis=1, keepdims=True), 1e-12)
            if full:
                for place, terms, vectors in zip(
                    filled, made["lexical_weights"], made["colbert_vecs"], strict=True
                ):
                    weights[place] = terms
                    colbert[place] = np.asarray(vectors, np.float32)
        return M3Encoding(dense, _matrix(weights, self._vocabulary), colbert)

    def _loaded(self) -> Any:
        with self._lock:
            if self._model is None:
                require_bge_extra()
                stay_offline()
                try:
                    from FlagEmbedding import BGEM3FlagModel  # noqa: PLC0415  # 9 s and an optional extra

                    self._model = BGEM3FlagModel(
                        str(self.path),
                        use_fp16=False,
                        devices=self.device or "cpu",
                        pooling_method=self.pooling,
                        normalize_embeddings=True,
                    )
                except (ImportError, OSError, ValueError, KeyError, RuntimeError) as error:
                    msg = f"{self.path}: BGE-M3 cannot be loaded ({_first_line(error)})"
                    raise ModelError(msg) from error
                config = self._model.model.model.config
                self._dimension = int(config.hidden_size)
                self._vocabulary = int(config.vocab_size)
                _log.info("BGE-M3 loaded: %d dimensions", self._dimension)
            return self._model


def sparse_scores(query: sparse.csr_matrix, documents: sparse.csr_matrix) -> npt.NDArray[np.float32]:
    """Learned-sparse match: the dot product of term weights, ``[queries, documents]`` float32."""
    return np.asarray((query @ documents.T).toarray(), np.float32)


def colbert_score(query: Matrix, document: Matrix) -> float:
    """Late interaction: mean over query tokens of the best cosine in the document; 0 if either is empty."""
    if not len(query) or not len(document):
        return 0.0
    return float((query @ document.T).max(axis=1).mean())


def _matrix(weights: list[dict[str, float]], columns: int) -> sparse.csr_matrix:
    sizes = [len(row) for row in weights]
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    terms = np.fromiter((int(term) for row in weights for term in row), np.int32, count=int(indptr[-1]))
    values = np.fromiter(
        (float(v) for row in weights for v in row.values()), np.float32, count=int(indptr[-1])
    )
    return sparse.csr_matrix((values, terms, indptr), shape=(len(weights), columns))


def _fingerprint(paths: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        size = path.stat().st_size
        digest.update(f"{path.name}:{size}".encode())
        with path.open("rb") as file:
            digest.update(file.read(_PROBE_BYTES))
            file.seek(max(0, size - _PROBE_BYTES))
            digest.update(file.read(_PROBE_BYTES))
    return digest.hexdigest()[:16]


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
