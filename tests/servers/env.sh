#!/usr/bin/env bash
# env.sh: make the environment of requirements/vllm.lock if it is not there yet; print its folder.
# It lies outside the clone, named by the lock's hash, and appears all at once or not at all.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
lock=$root/requirements/vllm.lock
uv=${UV:-$root/.venv/bin/uv}
[ -x "$uv" ] || uv=$(command -v uv) || { echo "uv not found: run 'make test' once, or set UV" >&2; exit 1; }
envs=${WARDROUND_CACHE:-$HOME/.cache/wardround}/envs
env=$envs/vllm-$(sha256sum "$lock" | cut -c1-16)
mkdir -p "$envs"
exec 9>"$env.lock"
flock 9                     # a second caller waits for the first one's environment
if [ ! -x "$env/bin/python" ]; then
    building=$(mktemp -d "$envs/building-XXXXXX")
    trap 'rm -rf "$building"' EXIT
    echo "installing the server environment (about 6 GB, once per lock) ..." >&2
    # relocatable: scripts find their interpreter after the rename
    "$uv" venv -q --relocatable --python 3.11 "$building/env" >&2
    UV_LINK_MODE=copy "$uv" pip install -q --no-deps --require-hashes --python "$building/env/bin/python" -r "$lock" >&2
    mv "$building/env" "$env"
fi
echo "$env"
