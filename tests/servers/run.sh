#!/usr/bin/env bash
# run.sh [pytest arguments]: the tests that want real servers, in the environment of requirements/vllm.lock.
# TESTS=tests/servers/test_bge_models.py runs one file.
# The environment is made once per lock, outside the clone (see env.sh); wardround itself comes from the tree.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
env=$(bash "$here/env.sh")
cd "$root"
export PYTHONPATH=$root/.typing PYTHONDONTWRITEBYTECODE=1 TOKENIZERS_PARALLELISM=false
export HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1
exec "$env/bin/python" -m pytest "${TESTS:-tests/servers}" -q -p no:cacheprovider -m "server or bge" "$@"
