#!/usr/bin/env bash
# lock.sh [--upgrade]: resolve pyproject.toml into hashed locks for Python 3.11 to 3.13 on every platform.
# Hashes only: no download address goes into the tree, so any index or mirror can serve the files.
set -euo pipefail
cd "$(dirname "$0")/.."
uv=${UV:-.venv/bin/uv}
compile() {
    "$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-header --no-emit-index-url --no-annotate "$@"
}
compile "$@" requirements/build.in -o requirements/build.lock
compile "$@" pyproject.toml requirements/build.in -o requirements/base.lock
compile "$@" pyproject.toml requirements/build.in --extra dev -c requirements/base.lock -o requirements/dev.lock
if grep -n '://' requirements/*.lock; then
    echo "lock: an address got into a lock" >&2
    exit 1
fi
