#!/usr/bin/env bash
# env.sh: make the environment of requirements/vllm.lock if it is not there yet; print its folder.
# It lies outside the clone, named by the lock's hash, and appears all at once or not at all.
# PYTHON=… is a Python 3.11 (x86-64 Linux: what vLLM's CPU wheels are locked for).
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
lock=$root/requirements/vllm.lock
envs=${WARDROUND_CACHE:-$HOME/.cache/wardround}/envs
env=$envs/vllm-$(sha256sum "$lock" | cut -c1-16)
if [ -x "$env/bin/python" ]; then
    echo "$env"
    exit 0
fi
uv=${UV:-$root/.venv/bin/uv}
[ -x "$uv" ] || uv=$(command -v uv) || { echo "uv not found: run 'make setup' once, or set UV" >&2; exit 1; }
mkdir -p "$envs"
exec 9>"$env.lock"
flock 9 # a second caller waits for the first one's environment
if [ ! -x "$env/bin/python" ]; then
    # uv does not read pip's configuration: hand over what it says, so that one mirror serves both.
    pip_says() { python3 -m pip config get "$1" 2>/dev/null || true; }
    index=${UV_DEFAULT_INDEX:-${PIP_INDEX_URL:-$(pip_says global.index-url)}}
    [ -z "$index" ] || export UV_DEFAULT_INDEX=$index
    extra=${UV_INDEX:-${PIP_EXTRA_INDEX_URL:-$(pip_says global.extra-index-url)}}
    [ -z "$extra" ] || export UV_INDEX=$extra
    cert=${SSL_CERT_FILE:-${PIP_CERT:-$(pip_says global.cert)}}
    [ -z "$cert" ] || export SSL_CERT_FILE=$cert
    export UV_LINK_MODE=copy UV_NO_PROGRESS=1 UV_PYTHON_DOWNLOADS=never
    building=$(mktemp -d "$envs/building-XXXXXX")
    trap 'rm -rf "$building"' EXIT
    echo "installing the server environment (about 7 GB, once per lock) ..." >&2
    # relocatable: scripts find their interpreter after the rename
    "$uv" venv -q --relocatable --python "${PYTHON:-3.11}" "$building/env" >&2 ||
        { echo "the server tests need Python 3.11; set PYTHON=/path/to/it" >&2; exit 1; }
    install() { "$uv" pip install -q --require-hashes --python "$building/env/bin/python" "$@" >&2; }
    install -r "$root/requirements/build.lock" # builds the few source packages, without fetching others
    install --no-deps --no-build-isolation -r "$lock"
    mv "$building/env" "$env"
fi
echo "$env"
