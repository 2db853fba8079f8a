"""A small real HTTP server on loopback that speaks the OpenAI protocol, well or badly, as it is told."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = Callable[["Handler", dict[str, Any]], None]


@dataclass
class Script:
    """What the server does with each chat request in turn; the last one again and again."""

    replies: list[Reply]
    max_model_len: int | None = 4096
    models: list[str] = field(default_factory=lambda: ["tiny-qwen"])
    seen: list[dict[str, Any]] = field(default_factory=list)
    asked_for: list[str] = field(default_factory=list)
    models_at: str | None = None
    connections: int = 0

    def next_reply(self) -> Reply:
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: Script
    stopping: threading.Event

    def log_message(self, *args: object) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        self.script.asked_for.append(self.path)
        if self.script.models_at is not None:
            self.redirect(self.script.models_at + "/models", 307)
            return
        known = {
            "object": "model",
            "created": 0,
            "owned_by": "test",
            "max_model_len": self.script.max_model_len,
        }
        data = [{"id": name, **known} for name in self.script.models]
        self.send_whole(200, {"object": "list", "data": data})

    def do_POST(self) -> None:
        self.script.asked_for.append(self.path)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.script.seen.append(body)
        self.script.next_reply()(self, body)

    def send_whole(self, status: int, value: object) -> None:
        data = value.encode() if isinstance(value, str) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def redirect(self, to: str, code: int) -> None:
        self.send_response(code)
        self.send_header("Location", to)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def start_stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def send_event(self, value: object) -> None:
        data = f"data: {value if isinstance(value, str) else json.dumps(value)}\n\n".encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def end_stream(self) -> None:
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def send_piece(self, text: str | None, finish: str | None = None) -> None:
        delta = {"role": "assistant", "content": text} if text is not None else {}
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        self.send_event(_chunk([choice]))


def _chunk(choices: list[object], usage: object = None) -> dict[str, object]:
    return {
        "id": "c", "object": "chat.completion.chunk", "created": 0, "model": "tiny-qwen",
        "choices": choices, "usage": usage,
    }  # fmt: skip


def says(text: str | dict[str, Any], finish: str = "stop") -> Reply:
    """Streams a whole answer, seven characters at a time, with its usage."""
    whole = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)

    def reply(server: Handler, body: dict[str, Any]) -> None:
        server.start_stream()
        server.send_piece("")
        for start in range(0, len(whole), 7):
            server.send_piece(whole[start : start + 7])
        server.send_piece(None, finish)
        usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
        server.send_event(_chunk([], usage))
        server.send_event("[DONE]")
        server.end_stream()

    return reply


def status(code: int) -> Reply:
    """Answers with an error status."""
    return lambda server, body: server.send_whole(code, {"error": {"message": "no", "code": code}})


def redirects(to: str, code: int = 307) -> Reply:
    """Sends the client somewhere else, with what it said."""
    return lambda server, body: server.redirect(to + "/chat/completions", code)


def cuts_off(text: str) -> Reply:
    """Breaks the connection after a part of the answer."""

    def reply(server: Handler, body: dict[str, Any]) -> None:
        server.start_stream()
        server.send_piece(text)
        server.connection.shutdown(2)
        server.close_connection = True

    return reply


def ends_early(text: str) -> Reply:
    """Closes the stream politely in mid-answer: no finish reason, no [DONE]."""

    def reply(server: Handler, body: dict[str, Any]) -> None:
        server.start_stream()
        server.send_piece(text)
        server.end_stream()

    return reply


def breaks_in_stream(server: Handler, body: dict[str, Any]) -> None:
    """Reports an error of its own in mid-answer, as vLLM does when its engine dies."""
    server.start_stream()
    server.send_piece("{")
    server.send_event({"error": {"message": "engine died", "type": "internal", "code": 500}})
    server.end_stream()


def hangs(server: Handler, body: dict[str, Any]) -> None:
    """Never answers."""
    server.stopping.wait(60)


def drips(server: Handler, body: dict[str, Any]) -> None:
    """Sends a little at a time for ever, so that no single read ever times out."""
    server.start_stream()
    while not server.stopping.wait(0.05):
        server.send_piece(" ")


def not_the_protocol(server: Handler, body: dict[str, Any]) -> None:
    """A web page instead of an answer."""
    server.start_stream()
    server.send_event("<html>")
    server.end_stream()


class MisbehavingServer:
    """Serves a script on a free loopback port; a context manager."""

    def __init__(self, *replies: Reply, **script: Any) -> None:
        self.script = Script(list(replies), **script)
        self._stopping = threading.Event()
        handler = type("Scripted", (Handler,), {"script": self.script, "stopping": self._stopping})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> MisbehavingServer:
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def asked(self) -> int:
        """How many chat requests came in."""
        return len(self.script.seen)


def wait_until(condition: Callable[[], bool], seconds: float = 5) -> None:
    """Poll for something that another thread does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "did not happen"
        time.sleep(0.01)
