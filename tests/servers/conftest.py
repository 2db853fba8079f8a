"""One real vLLM server and tiny models for the whole run."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).parent
START_S = 420


@dataclass(frozen=True)
class Server:
    url: str
    model: str
    pid: int
    log: Path


def make_model(kind: str, target: Path) -> Path:
    subprocess.run([sys.executable, str(HERE / "tiny_models.py"), kind, str(target)], check=True)
    return target


@pytest.fixture(scope="session")
def tiny_qwen(tmp_path_factory):
    return make_model("qwen", tmp_path_factory.mktemp("models") / "tiny-qwen")


@pytest.fixture(scope="session")
def tiny_bge(tmp_path_factory):
    return make_model("bge", tmp_path_factory.mktemp("bge"))


@pytest.fixture(scope="session")
def vllm_server(tiny_qwen, tmp_path_factory):
    """vLLM over the tiny model, on a free port, stopped by SIGINT to its own pid."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    name, log = f"tiny-{os.getpid()}", tmp_path_factory.mktemp("vllm") / "server.log"
    with log.open("wb") as out:
        child = subprocess.Popen(
            ["bash", str(HERE / "serve.sh"), sys.prefix, str(tiny_qwen), name, str(port)],
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_for(f"http://127.0.0.1:{port}/health", child, log)
        yield Server(f"http://127.0.0.1:{port}/v1", name, child.pid, log)
    finally:
        stop(child)


def wait_for(health: str, child: subprocess.Popen, log: Path) -> None:
    """Until the server is healthy; a dead child fails at once, so no other server can answer for it."""
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        if child.poll() is not None:
            pytest.fail(f"vLLM ended with {child.returncode}:\n{log.read_text(errors='replace')[-3000:]}")
        try:
            with urllib.request.urlopen(health, timeout=5) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    pytest.fail(f"vLLM was not healthy within {START_S} s:\n{log.read_text(errors='replace')[-3000:]}")


def stop(child: subprocess.Popen) -> None:
    if child.poll() is None:
        child.send_signal(signal.SIGINT)
        try:
            child.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait(10)
