"""An OpenAI-compatible endpoint with one answer and a fixed latency; run as a file, so that its CPU is not ours.

Reads one argument, JSON with ``reply`` and ``latency_seconds``; prints the port it listens on, serves until its input
ends (so it never outlives who started it), and prints one JSON object of what it saw. Whatever is posted is answered;
only as much of HTTP is read as keeps thousands of answers a second cheap.
"""

import asyncio
import json
import sys
from time import process_time
from typing import Any

HEAD_END = b"\r\n\r\n"
LENGTH = b"content-length:"


class Endpoint:
    """What is answered, when, and what was asked."""

    def __init__(self, reply: str, latency_seconds: float) -> None:
        self.latency_seconds = latency_seconds
        self.request_count = 0
        self.body_bytes = 0
        self.in_flight = 0
        self.most_in_flight = 0
        self.late_seconds = 0.0
        """Sum over all answers of what each came too late by: the fault of this process, or of a crowded machine."""
        body = _completion(reply)
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        self.response = head.encode() + HEAD_END + body

    def told(self) -> dict[str, Any]:
        """What it saw."""
        return {
            "request_count": self.request_count,
            "body_bytes": self.body_bytes,
            "most_in_flight": self.most_in_flight,
            "late_seconds": self.late_seconds,
            "cpu_seconds": process_time(),
        }


class Connection(asyncio.Protocol):
    """One client's connection, kept open; a request is answered before the next is read."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._received = bytearray()
        self._due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps the way back."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Sets the clock when a request is whole."""
        self._received += data
        if self._due is not None:
            return
        body_at = self._received.find(HEAD_END) + len(HEAD_END)
        if body_at < len(HEAD_END):
            return
        head = bytes(self._received[:body_at]).lower()
        length_at = head.find(LENGTH)
        length = int(head[length_at + len(LENGTH) :].split(b"\r\n", 1)[0]) if length_at >= 0 else 0
        if len(self._received) < body_at + length:
            return
        del self._received[: body_at + length]
        endpoint, loop = self._endpoint, asyncio.get_running_loop()
        endpoint.request_count += 1
        endpoint.body_bytes += length
        endpoint.in_flight += 1
        endpoint.most_in_flight = max(endpoint.most_in_flight, endpoint.in_flight)
        self._due = loop.call_later(endpoint.latency_seconds, self._answer)

    def connection_lost(self, error: Exception | None) -> None:
        """A client that gave up gets no answer."""
        if self._due is not None:
            self._due.cancel()
            self._endpoint.in_flight -= 1

    def _answer(self) -> None:
        assert self._due is not None
        self._endpoint.late_seconds += asyncio.get_running_loop().time() - self._due.when()
        self._endpoint.in_flight -= 1
        self._due = None
        self._transport.write(self._endpoint.response)


def _completion(reply: str) -> bytes:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": reply}}
    said = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "loopback",
        "choices": [choice],
        "usage": {"prompt_tokens": 2_000, "completion_tokens": 12, "total_tokens": 2_012},
    }
    return json.dumps(said).encode()


async def main(request: dict[str, Any]) -> None:
    """Serves until the input ends."""
    loop = asyncio.get_running_loop()
    endpoint = Endpoint(request["reply"], request["latency_seconds"])
    server = await loop.create_server(lambda: Connection(endpoint), "127.0.0.1", 0, backlog=4_096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()
    print(json.dumps(endpoint.told()))


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
