"""A model behind a vLLM server that is trained here: its adapters are made in this process and loaded by the server.

The server must run with ``--enable-lora`` and ``VLLM_ALLOW_RUNTIME_LORA_UPDATING=True``, and read the same data folder
as we do. An adapter is loaded when first wanted and unloaded when nobody wants it any more.
"""

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from s3gym.config import TrainingSettings
from s3gym.models import local
from s3gym.models._failures import failure_of, short
from s3gym.models._litellm import litellm_module
from s3gym.models.api import ApiModel
from s3gym.models.base import Change, Example, Model, ModelError, Request, TrainingFailed, Weights
from s3gym.models.prices import Prices
from s3gym.transcript import Message

PREFIX = "hosted_vllm/"
LOAD_SECONDS = 300.0
"""Longest wait for a server to load an adapter or let it go."""

_log = logging.getLogger(__name__)
_users: Counter[tuple[str, str]] = Counter()
"""How many want an adapter: (address, name)."""
_moving = threading.Lock()


class ServedModel(ApiModel):
    """One model behind vLLM, and the weights it is trained from here."""

    is_only_adapted = True

    def __init__(
        self, model_id: str, base_url: str, revision: str | None, prices: Prices | None, trainee: local.LocalModel
    ) -> None:
        super().__init__(model_id, base_url, revision, prices)
        self._address = base_url.rstrip("/")
        self._trainee = trainee

    def check(self) -> None:
        """Whether litellm knows the name, and the weights it is trained from are there."""
        super().check()
        self._trainee.check()

    def training_identity(self) -> dict[str, Any]:
        """That of the weights it is trained from; the server's answers are told apart by their digest."""
        return self._trainee.training_identity()

    def example(self, messages: Sequence[Message], reply: str, reasoning: str | None = None) -> Example:
        """The tokens of a call, by the tokenizer and the template of those weights."""
        return self._trainee.example(messages, reply, reasoning)

    async def train(
        self,
        examples: Sequence[Example],
        settings: TrainingSettings,
        *,
        start: Weights | None,
        seed: int,
        folder: Path,
        card: Mapping[str, str],
        on_update: Callable[[Change], None],
    ) -> str:
        """Makes an adapter in this process."""
        if settings.method != "lora":
            raise TrainingFailed(
                f"training.method = {settings.method!r}: the server of {self.model_id} loads adapters only; use "
                "'lora', or local:<weights> to train all of a model"
            )
        return await self._trainee.train(
            examples, settings, start=start, seed=seed, folder=folder, card=card, on_update=on_update
        )

    @asynccontextmanager
    async def with_weights(self, weights: Weights) -> AsyncIterator[Model]:
        """The model with an adapter that the server holds as long.

        Raises:
            ModelError: the server does not load it; the message says why and what to do.
        """
        await asyncio.to_thread(self._load, weights)
        try:
            yield _Adapted(self, weights)
        finally:
            await asyncio.to_thread(self._unload, weights)

    def _load(self, weights: Weights) -> None:
        with _moving:
            path = str(weights.folder.resolve())
            status, told = self._post("load_lora_adapter", {"lora_name": weights.name, "lora_path": path})
            # names carry the digest, so one that is there already is the same
            if status != 200 and "already been loaded" not in told:
                raise _refusal(status, told, self._address, path)
            _users[self._address, weights.name] += 1

    def _unload(self, weights: Weights) -> None:
        with _moving:
            _users[self._address, weights.name] -= 1
            if _users[self._address, weights.name] > 0:
                return
            try:
                status, told = self._post("unload_lora_adapter", {"lora_name": weights.name})
            except ModelError as error:
                status, told = 0, error.message
            if status not in (200, 404):  # 404: gone already
                _log.warning("%s keeps adapter %s: %s", self._address, weights.name, told)

    def _post(self, what: str, body: Mapping[str, str]) -> tuple[int, str]:
        """Status and what the server said."""
        import httpx

        key = litellm_module().get_llm_provider(self.model_id, api_base=self._address)[2]
        try:
            response = httpx.post(
                f"{self._address}/{what}",
                json=dict(body),
                headers={"Authorization": f"Bearer {key}"},
                timeout=LOAD_SECONDS,
            )
        except httpx.HTTPError as error:
            raise failure_of(error) from None
        return response.status_code, short(_words(response))


class _Adapted(ApiModel):
    """The model with an adapter: in rows and prices still the user's, at the server another name."""

    def __init__(self, served: ServedModel, weights: Weights) -> None:
        super().__init__(served.model_id, served._base_url, served.revision, served._given_prices)
        self._weights = weights

    def identity(self) -> dict[str, Any]:
        """With the digest of its weights."""
        return {**super().identity(), "trained": self._weights.digest}

    def _arguments(self, request: Request, refused: set[str]) -> dict[str, Any]:
        return {**super()._arguments(request, refused), "model": f"{PREFIX}{self._weights.name}"}


def load(model_id: str, base_url: str | None, revision: str | None, prices: Prices | None, weights: str) -> ServedModel:
    """The model ``hosted_vllm/<name>`` at ``base_url``, trained from ``weights``: what follows ``local:``.

    Raises:
        ValueError: it is no such model, or the address or the weights cannot be meant.
    """
    from s3gym.models import api

    if not model_id.startswith(PREFIX) or base_url is None:
        raise ValueError(
            f"weights = {weights!r}: only a model {PREFIX}<name> with a base_url takes weights to be trained from; "
            "leave them out, or name the model so"
        )
    api.load(model_id, base_url)  # looks at the address
    return ServedModel(model_id, base_url, revision, prices, local.load(f"{local.PREFIX}{weights}"))


def _words(response: Any) -> str:
    """What vLLM says, in the forms of its versions."""
    try:
        said = response.json()
    except ValueError:
        return str(response.text)
    if isinstance(said, dict):
        inner = said.get("error", said)
        said = inner.get("message") or inner.get("detail") or inner if isinstance(inner, dict) else inner
    return str(said)


def _refusal(status: int, told: str, address: str, path: str) -> ModelError:
    if status in (401, 403):
        remedy = "check the environment variable HOSTED_VLLM_API_KEY"
        return ModelError("authentication", f"{address} lets nobody load adapters ({told}); {remedy}")
    if status in (404, 405) and told in ("Not Found", "Method Not Allowed"):
        return ModelError(
            "not_found",
            f"{address} has no load_lora_adapter; start vLLM with --enable-lora and "
            "VLLM_ALLOW_RUNTIME_LORA_UPDATING=True",
        )
    if status >= 500:
        return ModelError("server", f"{address} cannot load {path} ({told}); see the server's log")
    return ModelError(
        "bad_request",
        f"{address} cannot load {path} ({told}); the server must read this folder under the same path, serve the model "
        "it was trained from, and allow its rank (--max-lora-rank)",
    )
