"""A real OpenAI-compatible HTTP server on the loopback interface, programmed by the test that uses it.

Not a model: it answers what it was told to. Use it through the fixture ``loopback`` (``tests/conftest.py``)::

    def test_x(loopback):
        loopback.enqueue(failure(429, "slow down", {"Retry-After": "1"}), chat("Answer: LEFT, Score: 1"))
        ...                                        # the first call fails, the second is answered
        assert len(loopback.requests) == 2         # what was really asked, headers and JSON body

or, to play a game, with a handler that sees the request's JSON and is called once the queue is empty::

    loopback.handler = lambda body: answer_for(body["messages"][-1]["content"])   # a str, or a Reply

A handler runs in the thread of its connection, so several may run at once.
"""

import json
import os
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from s3gym.models.base import Decoding, Request, Scene

CANARY = "sk-canary-3f9a71c2e5"
"""The key that clients of the server present; it must turn up nowhere else."""
ANSWER = "Answer: LEFT, Score: 0.5"
"""What the default handler says to everything."""


@dataclass(frozen=True)
class Reply:
    """An HTTP answer; the functions below make the usual ones."""

    body: str
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_seconds: float = 0.0
    byte_seconds: float = 0.0
    """Pause before each byte of the body: a server that trickles."""
    is_hanging: bool = False
    """Accept the request and never answer it (until the server closes)."""
    is_reset: bool = False
    """Break the connection in the middle of the body."""

    def after(self, seconds: float) -> "Reply":
        """The same answer, ``seconds`` later."""
        return replace(self, delay_seconds=seconds)


@dataclass(frozen=True)
class Received:
    """A request as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


Handler = Callable[[dict[str, Any]], "Reply | str"]


def chat(
    content: str | None,
    *,
    finish_reason: str = "stop",
    usage: Mapping[str, Any] | None = None,
    choice_count: int = 1,
    **message: Any,
) -> Reply:
    """A well-formed chat completion; further keywords enter its message, such as ``reasoning_content``."""
    choice = {"finish_reason": finish_reason, "message": {"role": "assistant", "content": content, **message}}
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "loopback",
        "choices": [{"index": index, **choice} for index in range(choice_count)],
        "usage": usage or {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25},
    }
    return Reply(json.dumps(body))


def failure(status: int, message: str, headers: Mapping[str, str] | None = None, code: str | None = None) -> Reply:
    """An error in OpenAI's form."""
    body = {"error": {"message": message, "type": "error", "param": None, "code": code}}
    return Reply(json.dumps(body), status, headers or {})


def hang() -> Reply:
    """A server that takes the request and says nothing."""
    return Reply("", is_hanging=True)


def request_of(
    text: str = "Your move.",
    *,
    seed: int = 0,
    temperature: float | None = None,
    timeout_seconds: float = 10.0,
) -> Request:
    """A request of one message."""
    return Request(
        messages=({"role": "user", "content": text},),
        purpose="act",
        seed=seed,
        decoding=Decoding(temperature=temperature, max_output_tokens=100, timeout_seconds=timeout_seconds),
        scene=Scene(players=None, reader=None, reward_range=(0.0, 1.0), success_score=1.0, score_aggregation="sum"),
    )


class Loopback:
    """The server; started on construction, ended by ``close``."""

    def __init__(self) -> None:
        self.requests: list[Received] = []
        """Every request so far, in order of arrival."""
        self.handler: Handler = lambda body: ANSWER
        """Asked once the queue is empty."""
        self.most_in_flight = 0
        """Highest number of requests that were open at the same time."""
        self._queue: deque[Reply | str] = deque()
        self._open = 0
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _connection(self))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    @property
    def base_url(self) -> str:
        """What a client is given as its endpoint."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def enqueue(self, *replies: Reply | str) -> None:
        """Answers for the next requests, one each; a str is the content of a chat completion."""
        self._queue.extend(replies)

    def close(self) -> None:
        """Lets hanging requests go and stops."""
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def pause(self, seconds: float | None) -> None:
        """Waits so long, or for ever; at most until the server closes."""
        if seconds != 0:
            self._closing.wait(seconds)

    def answer(self, received: Received) -> Reply:
        """Records a request and finds its answer, waiting as long as that says."""
        with self._lock:
            self.requests.append(received)
            self._open += 1
            self.most_in_flight = max(self.most_in_flight, self._open)
            queued = self._queue.popleft() if self._queue else None
        try:
            reply = self.handler(received.body) if queued is None else queued
            if isinstance(reply, str):
                reply = chat(reply)
            self.pause(None if reply.is_hanging else reply.delay_seconds)
            return reply
        finally:
            with self._lock:
                self._open -= 1


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that gave up is what many tests are about: nothing to print."""


def _connection(loopback: Loopback) -> type[BaseHTTPRequestHandler]:
    class Connection(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            reply = loopback.answer(Received(self.path, dict(self.headers), json.loads(content or b"{}")))
            if reply.is_hanging:
                self.close_connection = True
                return
            body = reply.body.encode("utf-8", "surrogateescape")  # any bytes can be told
            self.send_response(reply.status)
            for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if reply.is_reset:
                self.wfile.write(body[: len(body) // 2])
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                os.close(self.connection.detach())  # at once and without a goodbye
                return
            if not reply.byte_seconds:
                self.wfile.write(body)
                return
            for byte in body:
                loopback.pause(reply.byte_seconds)
                self.wfile.write(bytes([byte]))
                self.wfile.flush()

        def log_message(self, format: str, *args: Any) -> None:
            """Silent."""

    return Connection
