"""Adapters that a server loads: a stand-in on the loopback interface speaks vLLM's protocol for them."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from s3gym.config import TrainingSettings
from s3gym.models import load_model
from s3gym.models.base import Example, ModelError, Trainable, TrainingFailed, Weights
from tests.models.loopback import CANARY, Loopback, Received, Reply, chat, failure, request_of

NAME = "hosted_vllm/org/name"


class Vllm:
    """What the server knows; its answers are those of vLLM 0.6 and later."""

    def __init__(self, loopback: Loopback) -> None:
        self.loopback = loopback
        self.adapters: dict[str, str] = {}
        self.calls: list[tuple[str, str]] = []
        """What was done, in order, with which model or adapter."""
        answer = loopback.answer

        def routed(received: Received) -> Reply:
            route = {"/v1/load_lora_adapter": self.load, "/v1/unload_lora_adapter": self.unload}
            loopback.handler = route.get(received.path, self.chat)
            return answer(received)

        loopback.answer = routed  # type: ignore[method-assign]

    def load(self, body: dict[str, Any]) -> Reply:
        name, path = body["lora_name"], body["lora_path"]
        self.calls.append(("load", name))
        if name in self.adapters:
            return _refused(400, f"The lora adapter '{name}' has already been loaded.")
        if not (Path(path) / "adapter_config.json").is_file():
            return failure(404, f"Loading lora {name} failed: No adapter found for {path}")
        self.adapters[name] = path
        return Reply(f"Success: LoRA adapter '{name}' added successfully.", headers={"Content-Type": "text/plain"})

    def unload(self, body: dict[str, Any]) -> Reply:
        name = body["lora_name"]
        self.calls.append(("unload", name))
        if self.adapters.pop(name, None) is None:
            return _refused(404, f"The lora adapter '{name}' cannot be found.")
        return Reply(f"Success: LoRA adapter '{name}' removed successfully.", headers={"Content-Type": "text/plain"})

    def chat(self, body: dict[str, Any]) -> Reply:
        model = body["model"]
        self.calls.append(("chat", model))
        if model != "org/name" and model not in self.adapters:
            return failure(404, f"The model `{model}` does not exist.")
        return chat(f"I am {model}.")


def _refused(status: int, message: str) -> Reply:
    """An error in vLLM's older form."""
    return Reply(json.dumps({"object": "error", "message": message, "code": status}), status)


@pytest.fixture
def vllm(loopback: Loopback, monkeypatch: pytest.MonkeyPatch) -> Vllm:
    monkeypatch.setenv("HOSTED_VLLM_API_KEY", CANARY)
    return Vllm(loopback)


@pytest.fixture
def weights(tmp_path: Path) -> Weights:
    folder = tmp_path / "adapter"
    folder.mkdir()
    (folder / "adapter_config.json").write_text("{}")
    return Weights(folder=folder, digest="d" * 64)


def served(loopback: Loopback) -> Any:
    return load_model(NAME, loopback.base_url, "mine", weights="org/name")


def said(model: Any, weights: Weights, use: Callable[[Any], Any] | None = None) -> Any:
    async def play() -> Any:
        async with model.with_weights(weights) as changed:
            return (await changed.complete(request_of())).text if use is None else use(changed)

    return asyncio.run(play())


def test_an_adapter_is_loaded_asked_and_unloaded(vllm: Vllm, weights: Weights) -> None:
    model = served(vllm.loopback)

    assert said(model, weights) == "I am s3gym-dddddddddddddddddddddddd."
    assert asyncio.run(model.complete(request_of())).text == "I am org/name."

    assert vllm.calls == [
        ("load", "s3gym-dddddddddddddddddddddddd"),
        ("chat", "s3gym-dddddddddddddddddddddddd"),
        ("unload", "s3gym-dddddddddddddddddddddddd"),
        ("chat", "org/name"),
    ]
    load = vllm.loopback.requests[0]
    assert load.path == "/v1/load_lora_adapter"
    assert load.body == {"lora_name": "s3gym-dddddddddddddddddddddddd", "lora_path": str(weights.folder.resolve())}
    headers = [{name.lower(): value for name, value in each.headers.items()} for each in vllm.loopback.requests]
    assert {each["authorization"] for each in headers} == {f"Bearer {CANARY}"}


def test_its_name_in_rows_stays_and_its_identity_has_the_digest(vllm: Vllm, weights: Weights) -> None:
    model = served(vllm.loopback)

    name, endpoint, identity = said(
        model, weights, lambda changed: (changed.model_id, changed.endpoint, changed.identity())
    )

    assert (name, endpoint) == (NAME, model.endpoint)
    assert identity == {**model.identity(), "trained": "d" * 64}
    assert model.identity() == load_model(NAME, vllm.loopback.base_url, "mine").identity()  # asked alike


def test_several_share_an_adapter_until_the_last_is_done(vllm: Vllm, weights: Weights) -> None:
    one, other = served(vllm.loopback), served(vllm.loopback)

    async def play() -> str:
        async with one.with_weights(weights) as changed:
            async with other.with_weights(weights):
                pass
            return str((await changed.complete(request_of())).text)

    assert asyncio.run(play()) == "I am s3gym-dddddddddddddddddddddddd."
    # the second finds it loaded, which is fine
    assert [what for what, _ in vllm.calls] == ["load", "load", "chat", "unload"]
    assert vllm.adapters == {}


def test_an_adapter_goes_also_when_its_use_failed(vllm: Vllm, weights: Weights) -> None:
    def fail(changed: Any) -> None:
        raise RuntimeError("of the user")

    with pytest.raises(RuntimeError, match="of the user"):
        said(served(vllm.loopback), weights, fail)

    assert vllm.adapters == {}


def test_one_that_is_gone_already_or_stays_is_no_failure(
    vllm: Vllm, weights: Weights, caplog: pytest.LogCaptureFixture
) -> None:
    said(served(vllm.loopback), weights, lambda changed: vllm.adapters.clear())
    assert caplog.text == ""

    said(served(vllm.loopback), weights, lambda changed: vllm.loopback.enqueue(failure(500, "stuck")))
    assert "keeps adapter s3gym-dddddddddddddddddddddddd: stuck" in caplog.text


@pytest.mark.parametrize(
    ("reply", "kind", "told"),
    [
        (Reply('{"detail": "Not Found"}', 404), "not_found", "--enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True"),
        (_refused(404, "No adapter found for /x"), "bad_request", "No adapter found.*must read this folder"),
        (failure(400, "LoRA rank 64 is greater than max_lora_rank 16."), "bad_request", "rank 64 .*--max-lora-rank"),
        (Reply('{"error": "Unauthorized"}', 401), "authentication", "HOSTED_VLLM_API_KEY"),
        (Reply("oops", 500), "server", "oops.*see the server's log"),
    ],
)
def test_what_the_server_does_not_do_is_told(reply: Reply, kind: str, told: str, vllm: Vllm, weights: Weights) -> None:
    vllm.loopback.enqueue(reply)

    with pytest.raises(ModelError, match=told) as caught:
        said(served(vllm.loopback), weights)

    assert caught.value.kind == kind and CANARY not in str(caught.value)
    assert (
        said(served(vllm.loopback), weights) == "I am s3gym-dddddddddddddddddddddddd."
    )  # nothing is left of the failure
    assert vllm.adapters == {}


def test_a_server_that_is_not_there_is_told(weights: Weights) -> None:
    model = load_model(NAME, "http://127.0.0.1:9/v1", weights="org/name")

    with pytest.raises(ModelError, match="check base_url") as caught:
        said(model, weights)

    assert caught.value.kind == "connection"


def test_all_of_a_served_model_cannot_be_trained(vllm: Vllm, tmp_path: Path) -> None:
    model = served(vllm.loopback)
    row = Example(tokens=[1, 2], prompt_count=1)

    with pytest.raises(TrainingFailed, match="training.method = 'full': .* loads adapters only; use 'lora'"):
        asyncio.run(
            model.train(
                [row],
                TrainingSettings(method="full"),
                start=None,
                seed=0,
                folder=tmp_path / "x",
                card={},
                on_update=lambda change: None,
            )
        )


def test_its_adapter_is_trained_here(vllm: Vllm, tmp_path: Path) -> None:
    pytest.importorskip("peft", reason="needs the extra local")
    from tests.models.test_local import written

    place = written(tmp_path / "base")
    model = load_model(NAME, vllm.loopback.base_url, weights=str(place))
    assert isinstance(model, Trainable)
    model.check()
    row = model.example(({"role": "user", "content": "Where to?"},), "UP")
    settings = TrainingSettings(rank=2, epochs=1)
    folder = tmp_path / "trained"

    digest = asyncio.run(
        model.train([row], settings, start=None, seed=0, folder=folder, card={}, on_update=lambda change: None)
    )

    assert model.training_identity() == load_model(f"local:{place}").training_identity()  # type: ignore[attr-defined]
    assert said(model, Weights(folder=folder, digest=digest)) == f"I am s3gym-{digest[:24]}."


@pytest.mark.parametrize(
    ("name", "base_url"),
    [("local:smollm2", None), ("openai/gpt-4.1", None), ("hosted_vllm/x", None), ("openai/x", "http://localhost:1/v1")],
)
def test_weights_belong_to_a_model_whose_server_takes_adapters(name: str, base_url: str | None) -> None:
    with pytest.raises(ValueError, match="weights = 'org/name': only a model hosted_vllm/<name> with a base_url"):
        load_model(name, base_url, weights="org/name")


def test_a_wrong_address_or_option_is_told_as_always() -> None:
    with pytest.raises(ValueError, match="base_url is no address"):
        load_model(NAME, "localhost", weights="org/name")
    with pytest.raises(ValueError, match="unknown option of a local model"):
        load_model(NAME, "http://localhost:1/v1", weights="org/name?bach=2")
