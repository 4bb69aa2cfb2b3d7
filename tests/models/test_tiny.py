"""The tiny model, answers chosen by likelihood, and what an honest explorer says of its actions."""

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from s3gym.games.base import Game
from s3gym.games.minesweeper import GAME as MINESWEEPER
from s3gym.games.snake import GAME as SNAKE
from s3gym.games.trust import GAME as TRUST
from s3gym.models import load_model
from s3gym.models.base import Completion, Decoding, Request, Scene
from s3gym.protocol.prompts import judgment_messages, step_messages
from s3gym.registry import UnknownName
from s3gym.transcript import env_text, read_answer_line

REASON = "needs the extra local"
transformers: Any = pytest.importorskip("transformers", reason=REASON)
torch: Any = pytest.importorskip("torch", reason=REASON)

from s3gym.models.local import tiny, weights  # noqa: E402
from s3gym.models.local.engine import Engine, Job  # noqa: E402
from s3gym.models.local.loading import load_model as load_folder  # noqa: E402
from tests.models.test_local import written  # noqa: E402

GAMES = (SNAKE, TRUST, MINESWEEPER)
LINES = ("Answer: UP,", "Answer: LEFT,", "Answer: LEFTMOST,", "Answer: RIGHT,", "No,", "Answer: (3,4),")


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def folder(cache: None) -> Path:
    return weights.find("tiny").folder(True)


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> Any:
    return transformers.AutoTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module")
def plain(folder: Path) -> Any:
    return transformers.AutoModelForCausalLM.from_pretrained(folder)


def observed(game: Game[Any, Any, Any], seed: int, steps: int = 0) -> str:
    """What the environment says after some random steps."""
    state, feedback, rng = game.reset(game.exploration, seed), None, random.Random(seed)
    for _ in range(steps):
        outcome = game.take(state, game.players["random"](game.view(state), rng).action).outcome
        state, feedback = outcome.state, outcome.feedback
    return env_text(feedback, game.render(game.view(state)))


def request_of(
    game: Game[Any, Any, Any], env: str, purpose: str = "act", temperature: float = 0.0, seed: int = 0
) -> Request:
    if purpose == "act":
        messages = step_messages(None, (), game.rules(game.exploration), env)
    else:
        messages = judgment_messages(game.rules(game.exploration), env, game.success_score)
    scene = Scene(game.players, game.reader, game.reward_range(game.exploration), game.success_score, "sum")
    return Request(
        messages=messages, purpose=purpose, seed=seed, decoding=Decoding(temperature=temperature), scene=scene
    )


def ask(model: Any, *requests: Request) -> list[Completion]:
    async def gathered() -> list[Completion]:
        return list(await asyncio.gather(*(model.complete(request) for request in requests)))

    return asyncio.run(gathered())


def shown(tokenizer: Any, env: str) -> str:
    """What the template makes of a step's prompt, without the marks of the roles."""
    prompt: str = tokenizer.apply_chat_template(
        list(step_messages(None, (), "Rules.", env)), add_generation_prompt=True, tokenize=False
    )
    assert prompt.startswith(tiny.USER)
    assert prompt.endswith(tiny.ASSISTANT)
    return prompt.removeprefix(tiny.USER).removesuffix(tiny.ASSISTANT)


def likelihood(plain: Any, prompt: list[int], line: list[int]) -> float:
    """Of one line computed alone by the library, in nats."""
    with torch.inference_mode():
        chances = torch.log_softmax(plain(input_ids=torch.tensor([prompt + line])).logits[0].double(), dim=-1)
    return float(sum(chances[len(prompt) + index - 1, token] for index, token in enumerate(line)))


# --- the model ----------------------------------------------------------------------------------------------


def test_its_weights_are_the_same_whenever_it_is_made(folder: Path, tmp_path: Path) -> None:
    torch.manual_seed(5)  # of no account

    tiny.write(tmp_path / "again")

    assert weights.fingerprint((tmp_path / "again").glob("*.safetensors")) == weights.fingerprint(
        folder.glob("*.safetensors")
    )
    first = transformers.AutoModelForCausalLM.from_pretrained(folder).model.embed_tokens.weight[0, :2].tolist()
    assert first == pytest.approx(FIRST, abs=1e-6)


FIRST = [0.26401785, -0.65890235]


def test_it_has_about_a_million_parameters_and_a_token_a_byte(plain: Any, tokenizer: Any) -> None:
    text = "A  b\r\n\n 'tis \x00\x07 \u65e5\u672c don't\t" + "".join(map(chr, range(256)))

    tokens = tokenizer(text, add_special_tokens=False).input_ids

    assert 8e5 < sum(weight.numel() for weight in plain.parameters()) < 1.2e6
    assert len(tokens) == len(text.encode())
    assert tokenizer.decode(tokens) == text


def test_it_sees_what_stands_around_a_head_and_the_end_of_other_states(tokenizer: Any) -> None:
    rows = ("  0 1 2 3", "0 # # # #", "1 # A . #", "2 # H T #", "3 # # # #")
    board = "\n".join(["Step 2 of 9. Heading: UP.", *rows, "Body, head to tail: (2,1) (2,2)"])

    # left a wall, right the tail, up an apple, down a wall: the third letter of three sides, the second of one
    assert shown(tokenizer, board) == "cfhl"
    assert shown(tokenizer, env_text("You moved.", board)) == "cfhl"
    record = "Round 3 of 10.\nRecord (you/opponent): cheat/cheat collaborate/cheat"
    assert shown(tokenizer, record) == record[-tiny.SIGHT :]
    assert shown(tokenizer, "short") == "short"


def test_its_template_writes_an_answer_as_it_is_generated(tokenizer: Any) -> None:
    asked = list(step_messages(None, (), "Rules.", "a state"))

    prompt = tokenizer.apply_chat_template(asked, add_generation_prompt=True, tokenize=False)
    whole = tokenizer.apply_chat_template([*asked, {"role": "assistant", "content": "Answer: x"}], tokenize=False)

    assert whole == f"{prompt}Answer: x{tokenizer.eos_token}"


def test_it_judges_and_remembers_nothing_at_once() -> None:
    model = load_model("local:tiny")

    judged, kept = ask(model, request_of(TRUST, "text", "judge"), request_of(TRUST, "text", "remember"))

    assert judged.text == "Final score: unknown\nSuccess: unknown"
    assert kept.text == "Nothing to retain."


# --- choosing -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("game", "times"), [(SNAKE, (0, 3, 6)), (TRUST, (0, 3, 6)), (MINESWEEPER, (4,))])
def test_the_answer_is_the_one_likeliest_to_be_written(
    game: Any, times: tuple[int, ...], plain: Any, tokenizer: Any
) -> None:
    for steps in times:
        env = observed(game, seed=steps, steps=steps)
        request = request_of(game, env)
        prompt = tokenizer.apply_chat_template(list(request.messages), add_generation_prompt=True, tokenize=False)
        beginning = tokenizer(prompt, add_special_tokens=False).input_ids
        lines = {
            action: tokenizer(f"Answer: {action},", add_special_tokens=False).input_ids
            for action in game.reader.actions(env)
        }

        (answer,) = ask(load_model("local:tiny"), request)

        action, score = read_answer_line(answer.text) or ("", 0.0)
        found = {name: likelihood(plain, beginning, line) for name, line in lines.items()}
        assert found[action] == pytest.approx(max(found.values()), abs=1e-4)
        assert score is None
        assert answer.facts.prompt_tokens == len(beginning)
        assert answer.facts.completion_tokens == len(answer.text.encode())


@pytest.mark.parametrize(("kind", "changes"), [("Llama", {}), ("Mistral", {"sliding_window": 16})])
def test_likelihoods_in_the_tree_are_those_of_each_answer_alone(
    kind: str, changes: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(tmp_path / kind, kind, **changes)
    plain = transformers.AutoModelForCausalLM.from_pretrained(folder)
    engine = Engine(load_folder(folder, "fp32", "cpu"), frozenset(), 2, prefix_bytes=2**28)
    seen: list[list[float]] = []
    drawn = engine._drawn

    def watched(values: Any, row: Any) -> int:
        seen.append(values.tolist())
        return drawn(values, row)

    monkeypatch.setattr(engine, "_drawn", watched)
    choices = tuple(tuple(line.encode()) for line in LINES)
    for text in ("Well? ", "x" * 127, "x" * 128, "Which way now? " * 20):  # less than a block, to more than two
        prompt = list(text.encode())
        expected = [likelihood(plain, prompt, list(line)) for line in choices]
        for _ in range(2):  # with nothing kept, and with blocks of the prompt
            chosen = engine.submit(Job(prompt, 1, 0.0, 0, 60.0, choices)).result(60)
            assert seen[-1] == pytest.approx(expected, abs=2e-3)
            assert tuple(chosen.tokens) == choices[expected.index(max(expected))]
        assert seen[-1] == seen[-2]


def test_a_choice_depends_on_nobody_beside_it_and_not_on_the_order_of_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_model("local:tiny")
    requests = [
        request_of(game, observed(game, seed, steps=2), temperature=temperature, seed=seed)
        for game in GAMES
        for seed in range(3)
        for temperature in (0.0, 2.0)
    ]
    lone = [ask(model, request)[0].text for request in requests]

    crowd = [answer.text for answer in ask(model, *requests)]
    for game in GAMES:
        actions = type(game.reader).actions
        monkeypatch.setattr(type(game.reader), "actions", lambda self, text, named=actions: named(self, text)[::-1])
    turned = [ask(model, request)[0].text for request in requests]

    assert lone == crowd == turned
    assert len(set(lone)) > len(GAMES)  # temperature draws


def test_the_seed_draws_an_action_as_often_as_it_is_likely(plain: Any, tokenizer: Any) -> None:
    env = observed(TRUST, 0)
    request = request_of(TRUST, env)
    prompt = tokenizer(
        tokenizer.apply_chat_template(list(request.messages), add_generation_prompt=True, tokenize=False),
        add_special_tokens=False,
    ).input_ids
    one, other = (
        likelihood(plain, prompt, tokenizer(f"Answer: {action},", add_special_tokens=False).input_ids)
        for action in ("cheat", "collaborate")
    )
    heat = (one - other) / 0.8472978603872037  # odds of 7 to 3: ln(7/3)

    answers = ask(
        load_model("local:tiny"), *(request_of(TRUST, env, temperature=heat, seed=seed) for seed in range(200))
    )

    # 140 expected, with a standard deviation of sqrt(200 * 0.7 * 0.3) = 6.5; four of them each way
    assert 114 <= sum("cheat" in answer.text for answer in answers) <= 166


def test_choosing_is_part_of_the_identity_and_the_tiny_models_own_way() -> None:
    chosen, free = load_model("local:tiny"), load_model("local:tiny?answers=free")

    assert chosen.identity()["answers"] == "legal"
    assert free.identity()["answers"] == "free"
    assert chosen.identity() != free.identity()
    assert load_model("local:tiny?answers=legal").identity() == chosen.identity()
    with pytest.raises(UnknownName, match="unknown answers 'lawful'"):
        load_model("local:tiny?answers=lawful")


# --- honest self-scores -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "action", "expected"),
    [
        ("none", "collaborate", 0.5),  # one of two collaborates: 2 / 2 - 1 / 2
        ("none", "cheat", 1.5),
        # 1 of 1 collaborated, so (1 + 1) / (1 + 2) = 2/3, and nothing followed a round like it: 3 * 2/3
        ("collaborate/collaborate", "cheat", 2.0),
        # 2 of 2 collaborated: 3/4; after the same round 1 of 1 did: (1 + 3/4) / 2 = 7/8, and 3 * 7/8 - 1
        ("collaborate/collaborate collaborate/collaborate", "collaborate", 1.625),
        # 2 of 4: 1/2; after cheat/cheat 1 of 1 collaborated: (1 + 1/2) / 2 = 3/4, and 3 * 3/4
        ("cheat/cheat collaborate/collaborate collaborate/collaborate cheat/cheat", "cheat", 2.25),
    ],
)
def test_an_honest_self_score_in_trust_is_what_this_match_lets_expect(
    record: str, action: str, expected: float
) -> None:
    observation = f"Round 5 of 10.\nRecord (you/opponent): {record}"

    assert TRUST.reader.expect(observation, action) == pytest.approx(expected)
    assert TRUST.reader.expect(observation, "shout") is None


def test_an_honest_self_score_in_snake_is_the_reward() -> None:
    earned = []
    for seed in range(10):
        state, rng = SNAKE.reset(SNAKE.exploration, seed), random.Random(seed)
        for _ in range(40):
            action = SNAKE.players["random"](SNAKE.view(state), rng).action
            expected = SNAKE.reader.expect(SNAKE.render(SNAKE.view(state)), action)
            outcome = SNAKE.take(state, action).outcome
            assert expected == outcome.reward
            earned.append(outcome.reward)
            state = outcome.state
    assert sum(earned) > 3


def test_an_honest_player_acts_as_ever_and_says_what_its_reader_expects() -> None:
    env = observed(TRUST, 1, steps=4)
    state = TRUST.reset(TRUST.exploration, 1)
    request = request_of(TRUST, env, seed=3)
    scene = Scene(TRUST.players, TRUST.reader, (-1.0, 3.0), 15.0, "sum", TRUST.view(state))
    request = Request(messages=request.messages, purpose="act", seed=3, decoding=request.decoding, scene=scene)

    honest, silent = (
        read_answer_line(ask(load_model(f"player:random{option}"), request)[0].text)
        for option in ("?confidence=honest", "")
    )

    assert honest is not None
    assert silent is not None
    assert honest[0] == silent[0]
    assert silent[1] is None
    assert honest[1] == pytest.approx(TRUST.reader.expect(env, honest[0]), abs=1e-3)


def test_a_steady_player_reacts_in_a_match_as_it_first_did() -> None:
    firsts = set()
    for seed in range(20):
        state, rng = TRUST.reset(TRUST.exploration, seed), random.Random(seed)
        for _ in range(10):
            state = TRUST.take(state, TRUST.players["steady"](TRUST.view(state), rng).action).outcome.state
        reactions: dict[Any, set[str]] = {}
        for index, (mine, _) in enumerate(state.record):
            reactions.setdefault(state.record[:index][-1:], set()).add(mine)
        assert all(len(choices) == 1 for choices in reactions.values())
        firsts.add(tuple(sorted((kind, *choices) for kind, choices in reactions.items())))
    assert len(firsts) > 6  # not always the same
