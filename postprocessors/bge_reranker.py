"""A cross-encoder from a local folder over the best records: optional, for those who run BGE."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle

from ..errors import ModelError
from ..models.bge import require_bge_extra, require_files, stay_offline

_FILES = ("config.json", "tokenizer_config.json")


class BgeReranker(BaseNodePostprocessor):
    """``FlagReranker`` as a LlamaIndex postprocessor.

    The score of a record becomes ``(1 - weight) * score + weight * sigmoid(cross-encoder)``, so it stays in
    0..1 and confidence keeps its meaning; both parts go into the metadata as ``reranker`` and ``fused``
    (the latter only where no one wrote it before). Records after the first ``candidates`` keep their order
    behind the others. Source: ours.

    Args:
        path: local folder of the model; nothing is downloaded.
        weight: of the cross-encoder, 0..1.
        candidates: how many records are read by it.
        batch_size: pairs a call.
        max_length: tokens of question and record together.
        threads: of torch, on the CPU.
        device: ``"cpu"``, ``"cuda:0"``, …; the CPU where None.

    Raises:
        ModelError: FlagEmbedding is not installed, or the folder is not whole.
    """

    path: Path
    weight: float = Field(default=0.5, ge=0, le=1)
    candidates: int = Field(default=30, ge=1)
    batch_size: int = Field(default=16, ge=1)
    max_length: int = Field(default=1024, ge=16)
    threads: int = Field(default=2, ge=1)
    device: str | None = None

    _model: Any = PrivateAttr(default=None)
    _lock: Any = PrivateAttr(default_factory=threading.RLock)

    def __init__(self, path: str | Path, **options: Any) -> None:
        super().__init__(path=Path(path), **options)
        require_files(self.path, _FILES, "BGE reranker")

    @classmethod
    def class_name(cls) -> str:
        """As LlamaIndex serialises it."""
        return "BgeReranker"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None or not nodes:
            return nodes
        head, tail = nodes[: self.candidates], nodes[self.candidates :]
        texts = [one.node.get_content(metadata_mode=MetadataMode.NONE) for one in head]
        scores = self._scores([(query_bundle.query_str, text) for text in texts])
        for one, score in zip(head, scores, strict=True):
            before = one.score or 0.0
            one.node.metadata.setdefault("fused", before)
            one.node.metadata["reranker"] = score
            one.score = (1 - self.weight) * before + self.weight * score
        head.sort(key=lambda one: -(one.score or 0.0))
        return head + tail

    def _scores(self, pairs: list[tuple[str, str]]) -> list[float]:
        with self._lock:
            model = self._loaded()
            import torch  # noqa: PLC0415  # optional extra

            torch.set_num_threads(self.threads)
            scores = model.compute_score(
                pairs, batch_size=self.batch_size, max_length=self.max_length, normalize=True
            )
        return [float(score) for score in (scores if isinstance(scores, list) else [scores])]

    def _loaded(self) -> Any:
        if self._model is None:
            require_bge_extra()
            stay_offline()
            try:
                from FlagEmbedding import FlagReranker  # noqa: PLC0415  # 9 s and an optional extra

                self._model = FlagReranker(str(self.path), use_fp16=False, devices=self.device or "cpu")
            except (ImportError, OSError, ValueError, KeyError, RuntimeError) as error:
                msg = f"{self.path}: the reranker cannot be loaded ({str(error)[:200]})"
                raise ModelError(msg) from error
        return self._model
