#!/usr/bin/env bash
# serve.sh ENV MODEL_DIR NAME PORT [vllm arguments]: vLLM on loopback, in the foreground; its pid is the server's.
# Stop it with SIGINT. Nothing is fetched and nothing is reported home.
set -euo pipefail
env=$1 model=$2 name=$3 port=$4
shift 4
export HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1
export VLLM_CPU_KVCACHE_SPACE=${VLLM_CPU_KVCACHE_SPACE:-1}     # GiB
if [ -e "$env/lib/libiomp5.so" ]; then                        # the OpenMP that vLLM's kernels were built with
    export LD_PRELOAD="$env/lib/libiomp5.so${LD_PRELOAD:+:$LD_PRELOAD}"
fi
# A weak model under a schema can emit blanks up to the limit; xgrammar can forbid them.
exec "$env/bin/python" -m vllm.entrypoints.openai.api_server \
    --host 127.0.0.1 --port "$port" --model "$model" --served-model-name "$name" \
    --dtype bfloat16 --enforce-eager --max-model-len "${MAX_MODEL_LEN:-4096}" --max-num-seqs 4 \
    --structured-outputs-config '{"backend": "xgrammar", "disable_any_whitespace": true}' "$@"
