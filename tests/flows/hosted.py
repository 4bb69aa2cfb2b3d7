"""Whole runs of a hosted model on a loopback server: what it answers, what they ask for, and what they cost."""

import hashlib
import json
import subprocess
import sys
import threading
from collections.abc import Collection
from pathlib import Path
from typing import Any

from tests.models.loopback import Received, Reply, chat

MODEL = "openai/loopback"
PROMPT_PRICE, COMPLETION_PRICE = 1.0, 2.0
"""Dollars a million tokens."""
ROUNDS = {"exploration": {"horizon": 2}, "evaluation": {"horizon": 2}}
CALLS = 3 * 7 * 2 + 3 * 2 + 3 + 3
"""Of ``request``: three evaluations of seven matches, three explored matches, all of two rounds; a memory text after
each explored match, and a look back on each."""


def request(base_url: str, **changes: Any) -> dict[str, Any]:
    """Two cells of one hosted model whose prices are known."""
    model = {"id": MODEL, "base_url": base_url, "prompt_price": PROMPT_PRICE, "completion_price": COMPLETION_PRICE}
    asked = {"scale": "smoke", "games": ["trust"], "models": [model], "pathways": ["none", "memory"]}
    return {**asked, "game": {"trust": ROUNDS}, **changes}


def play(body: dict[str, Any]) -> Reply:
    """The same request, the same answer at the same cost."""
    prompt, completion = tokens(body["messages"])
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return chat(said(body["messages"]), usage=usage)


def said(messages: list[dict[str, str]]) -> str:
    """What a deterministic player of trust says."""
    if "Answer: <ACTION>" not in messages[-1]["content"]:
        return "Retain: what paid. Avoid: the rest. Next: more of it."
    return f"Answer: {('collaborate', 'cheat')[tokens(messages)[1] % 2]}, Score: 1"


def tokens(messages: list[dict[str, str]]) -> tuple[int, int]:
    """(prompt, completion) tokens of its call; they differ from call to call."""
    text = "".join(message["content"] for message in messages)
    return len(text) // 4, 5 + hashlib.sha256(text.encode()).digest()[0] % 7


def dollars(prompt_tokens: int, completion_tokens: int) -> float:
    return (prompt_tokens * PROMPT_PRICE + completion_tokens * COMPLETION_PRICE) / 1e6


def distinct(requests: Collection[Received]) -> dict[str, dict[str, Any]]:
    """The bodies of different requests, by their text."""
    return {json.dumps(received.body, sort_keys=True): received.body for received in requests}


class Gate:
    """A handler that lets the first requests through and holds those after them, until it is opened."""

    def __init__(self, free: int, held: int) -> None:
        """Lets ``free`` through; is full when ``held`` wait."""
        self.held: list[dict[str, Any]] = []
        self._free, self._most = free, held
        self._lock = threading.Lock()
        self._is_full, self._is_open = threading.Event(), threading.Event()

    def __call__(self, body: dict[str, Any]) -> Reply:
        with self._lock:
            self._free -= 1
            is_held = self._free < 0 and not self._is_open.is_set()
            if is_held:
                self.held.append(body)
            if len(self.held) >= self._most:
                self._is_full.set()
        if is_held:
            self._is_open.wait()
        return play(body)

    def wait_until_full(self, process: "subprocess.Popen[str]") -> None:
        """Returns when as many are held as were announced."""
        while not self._is_full.wait(0.2):
            assert process.poll() is None, process.communicate()[0]

    def open(self) -> None:
        """Answers all that is held, and whatever comes."""
        self._is_open.set()


def start(data: Path, asked: dict[str, Any]) -> "subprocess.Popen[str]":
    """``s3gym run`` as a process of its own; standard output and error in one."""
    settings = [f"--set={name}={_toml(value)}" for name, value in asked.items()]
    command = [sys.executable, "-c", "from s3gym.cli import main; main()", "run", "--data", str(data), *settings]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {_toml(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)
