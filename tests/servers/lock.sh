#!/usr/bin/env bash
# lock.sh: resolve requirements/vllm.in and the project's own dependencies into requirements/vllm.lock.
# Hashes only: no download address goes into the tree, so any index or mirror can serve the files.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
uv=${UV:-$root/.venv/bin/uv}
"$uv" pip compile --quiet --python-version 3.11 --python-platform x86_64-unknown-linux-gnu \
    --generate-hashes --no-header --no-emit-index-url --no-annotate "$@" \
    --override requirements/vllm.overrides -o requirements/vllm.lock requirements/vllm.in pyproject.toml >/dev/null
echo "requirements/vllm.lock: $(grep -c == requirements/vllm.lock) packages"
