"""What all tests may use."""

from collections.abc import Iterator

import pytest

from tests.models.loopback import CANARY, Loopback


@pytest.fixture
def loopback(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    """An OpenAI-compatible server on localhost: give ``api.load`` its ``base_url`` and ``openai/...``.

    See ``tests/models/loopback.py`` for how it is programmed.
    """
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = Loopback()
    yield server
    server.close()
