#!/usr/bin/env bash
# setup.sh base|dev: make .venv at the repository's root and install a hashed lock and wardround itself into it.
# Needs Python 3.11 to 3.13 and a package index that pip knows; uv comes out of the lock.
# VENV=DIR makes another environment; INSTALL=FILE installs that wheel instead of the tree.
set -euo pipefail
cd "$(dirname "$0")/.."
lock=requirements/${1:?usage: setup.sh base|dev}.lock
venv=${VENV:-$PWD/.venv}

supported='import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))'
if [ ! -x "$venv/bin/python" ]; then
    for python in ${PYTHON:-python3 python3.12 python3.11 python3.13}; do
        if "$python" -c "$supported" 2>/dev/null; then break; fi
        python=
    done
    [ -n "$python" ] || { echo "setup: Python 3.11, 3.12 or 3.13 is needed (set PYTHON=/path/to/it)" >&2; exit 1; }
    "$python" -m venv "$venv" || { echo "setup: the venv module is incomplete; install your system's python3-venv" >&2; exit 1; }
fi
"$venv/bin/python" -c "$supported" || { echo "setup: $venv has another Python than 3.11 to 3.13; run 'make clean'" >&2; exit 1; }

# uv does not read pip's configuration: hand over what it says, so that one mirror serves both.
pip_says() { "$venv/bin/python" -m pip config get "$1" 2>/dev/null || true; }
index=${UV_DEFAULT_INDEX:-${PIP_INDEX_URL:-$(pip_says global.index-url)}}
[ -z "$index" ] || export UV_DEFAULT_INDEX=$index
extra=${UV_INDEX:-${PIP_EXTRA_INDEX_URL:-$(pip_says global.extra-index-url)}}
[ -z "$extra" ] || export UV_INDEX=$extra
cert=${SSL_CERT_FILE:-${PIP_CERT:-$(pip_says global.cert)}}
[ -z "$cert" ] || export SSL_CERT_FILE=$cert
export UV_LINK_MODE=${UV_LINK_MODE:-copy} UV_NO_PROGRESS=1 VIRTUAL_ENV=$venv

uv=$venv/bin/uv
if [ ! -x "$uv" ] || ! "$venv/bin/python" -c 'import setuptools, wheel' 2>/dev/null; then
    "$venv/bin/python" -m pip install --quiet --require-hashes -r requirements/build.lock
fi
# No build isolation: the two source distributions and wardround are built by the locked setuptools.
"$uv" pip install --quiet --no-build-isolation --require-hashes -r "$lock"
"$uv" pip install --quiet --no-build-isolation --no-deps ${INSTALL:--e .}
