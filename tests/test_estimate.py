"""The estimate of a run against what the same run really took."""

import random
import re
from pathlib import Path
from typing import Any

import pytest

from s3gym import storage
from s3gym.config import load_config
from s3gym.estimate import LONGER, SHORTER, Estimate, Span, Work, estimate, most_calls, sample, total
from s3gym.games.base import EVALUATION, EXPLORATION
from s3gym.models.base import Completion, Request, estimate_tokens
from s3gym.models.prices import Prices, prices_of
from s3gym.models.scripted import load
from s3gym.plan import RunPlan, make_plan, missing
from s3gym.records import CallFacts
from s3gym.registry import GAMES, INTERVENTIONS, names
from s3gym.registry import load as load_named
from s3gym.warehouse import Warehouse
from tests.direct import measure_directly
from tests.flows.test_kill import plays
from tests.models.loopback import Loopback, Reply, chat
from tests.programmed import Programmed

MOST = 300
"""Output tokens of a reply, at most."""
PRICES = Prices(prompt_usd=2e-6, cached_usd=5e-7, completion_usd=8e-6, written_usd=2e-6)


class Paid(Programmed):
    """A hosted model in all but the network: it plays like ``player`` and reports what its calls took."""

    is_free = False

    def __init__(self, player: str, *, has_tokenizer: bool = False) -> None:
        super().__init__("", model_id=player)
        self.has_tokenizer = has_tokenizer
        self.taken: list[CallFacts] = []

    def count_tokens(self, text: str) -> int:
        return len(re.findall(r"\w+|\S", text)) if self.has_tokenizer else estimate_tokens(text)

    async def complete(self, request: Request) -> Completion:
        text = self.say(request, random.Random(request.seed))
        assert estimate_tokens(text) <= MOST
        facts = CallFacts(
            prompt_tokens=sum(self.count_tokens(message["content"]) + 4 for message in request.messages),
            completion_tokens=self.count_tokens(text),
        )
        self.taken.append(facts)
        return Completion(text=text, facts=facts)

    def say(self, request: Request, rng: random.Random) -> str:
        """Moves after thoughts of any length, and notes as long as they may be."""
        if self.model_id == "terse":
            return "x"
        if request.purpose != "act":
            return "note " * (MOST * 4 // 5)
        if self.model_id == "babbling":
            return "never " * rng.randrange(1, MOST // 3) + "\nAnswer: " + "nothing of the kind " * 20
        move = load(f"player:{self.model_id}")._act(request, rng)
        return "hm " * rng.randrange(MOST) + "\n" + move


def lacking(plan: RunPlan, data: Path) -> Work:
    return [(stage, missing(data, stage)) for stage in plan.stages()]


def estimate_and_run(
    model: Paid, data: Path, monkeypatch: pytest.MonkeyPatch, *assignments: str, **request: Any
) -> Estimate:
    monkeypatch.setattr("s3gym.subjects.load_model", lambda *arguments, **named: model)
    values = {"scale": "smoke", "models": [model.model_id], "max_output_tokens": MOST, **request}
    plan = make_plan(load_config(None, values, assignments))
    work = list(lacking(plan, data))
    (told,) = estimate(work, {model.model_id: PRICES})
    assert most_calls(work) == told.calls.high
    measure_directly(data, *assignments, **values)
    assert not any(gaps for _, gaps in lacking(plan, data))  # a finished run
    return told


def is_between(amount: float, span: Span) -> bool:
    return span.low <= amount <= span.high


@pytest.mark.parametrize(
    ("game", "player"),
    [
        ("trust", "random"),
        ("trust", "babbling"),
        ("trust", "terse"),
        ("snake", "random"),
        ("snake", "expert"),
        ("minesweeper", "random"),
        ("minesweeper", "babbling"),
    ],
)
def test_a_finished_run_took_what_was_estimated(
    game: str, player: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Paid(player)
    told = estimate_and_run(model, tmp_path / "data", monkeypatch, games=[game])

    prompts = sum(facts.prompt_tokens or 0 for facts in model.taken)
    replies = sum(facts.completion_tokens or 0 for facts in model.taken)
    assert told.dollars is not None
    print(
        f"{game} {player}: calls {len(model.taken)} in {told.calls}, prompt tokens {prompts} in {told.prompt_tokens}, "
        f"completion tokens {replies} in {told.completion_tokens}"
    )
    assert is_between(len(model.taken), told.calls)
    assert is_between(prompts, told.prompt_tokens)
    assert is_between(replies, told.completion_tokens)
    assert is_between(prompts * 2e-6 + replies * 8e-6, told.dollars)


@pytest.mark.parametrize(
    "settings", [["history_token_limit=600"], ["memory_source=recursive"], ["retrospective=false"]]
)
def test_limits_and_memories_are_in_the_estimate(
    settings: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Paid("random")
    told = estimate_and_run(model, tmp_path / "data", monkeypatch, *settings, games=["snake"])
    unlimited = estimate(
        list(
            lacking(
                make_plan(
                    load_config(
                        None, {"scale": "smoke", "models": ["random"], "games": ["snake"], "max_output_tokens": MOST}
                    )
                ),
                tmp_path,
            )
        ),
        {},
    )[0]

    assert is_between(len(model.taken), told.calls)
    assert is_between(sum(facts.prompt_tokens or 0 for facts in model.taken), told.prompt_tokens)
    assert told.prompt_tokens.high < unlimited.prompt_tokens.high


def test_each_intervention_took_what_was_estimated_that_it_adds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Paid("random")
    monkeypatch.setattr(
        "s3gym.subjects.load_model", lambda name, *more: model if name == "random" else load("player:expert")
    )
    request = {"scale": "smoke", "games": ["trust"], "models": ["random"], "interventions": ["all"]}
    plan = make_plan(load_config(None, {**request, "max_output_tokens": MOST}))
    rows = estimate(list(lacking(plan, tmp_path)), {})
    assert most_calls(lacking(plan, tmp_path)) == total(rows).calls.high
    told = {row.intervention: row for row in rows if row.model_id == "random"}

    measure_directly(tmp_path, f"max_output_tokens={MOST}", **request)

    taken: dict[str, list[int]] = {}
    for stage in (stage for stage in plan.stages() if stage.model is model):
        for part in storage.parts_of(tmp_path, stage.stem):
            manifest = storage.read_manifest(tmp_path, part) or {}
            counts = taken.setdefault(stage.subject.intervention, [0, 0])
            counts[0] += manifest["calls_made"] + manifest["calls_replayed"]  # trust has the same rules relaxed
            counts[1] += manifest["prompt_tokens"] or 0
    assert taken.keys() == told.keys() == {"main", *names(INTERVENTIONS)}
    for name, (calls, prompts) in taken.items():
        assert is_between(calls, told[name].calls) and is_between(prompts, told[name].prompt_tokens), name
    assert taken["reference_memory"][0] == 7 * 10  # once for both pathways: seven opponents, ten rounds


def test_a_tokenizer_makes_the_estimate_narrower(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    widths = []
    for has_tokenizer in (True, False):
        model = Paid("random", has_tokenizer=has_tokenizer)
        told = estimate_and_run(model, tmp_path / str(has_tokenizer), monkeypatch, games=["trust"])
        assert is_between(sum(facts.prompt_tokens or 0 for facts in model.taken), told.prompt_tokens)
        widths.append(told.prompt_tokens.high / told.prompt_tokens.low)
    assert widths[0] < widths[1]


def test_a_hosted_run_cost_what_was_estimated(loopback: Loopback, tmp_path: Path) -> None:
    def answers(body: dict[str, Any]) -> Reply:
        text = plays(body)
        prompt = sum(estimate_tokens(message["content"]) for message in body["messages"])
        details = {"cached_tokens": prompt // 2}
        usage = {"prompt_tokens": prompt, "completion_tokens": estimate_tokens(text), "prompt_tokens_details": details}
        return chat(text, usage={**usage, "total_tokens": prompt + estimate_tokens(text)})

    loopback.handler = answers
    model = {"id": "openai/gpt-4.1", "base_url": loopback.base_url}
    request = {"scale": "smoke", "games": ["trust"], "models": [model], "pathways": ["history"]}
    shorter = ("game.trust.evaluation.horizon=3",)
    plan = make_plan(load_config(None, request, shorter))
    (told,) = estimate(lacking(plan, tmp_path / "data"), {"openai/gpt-4.1": prices_of("openai/gpt-4.1")})

    measure_directly(tmp_path / "data", *shorter, **request)

    assert is_between(len(loopback.requests), told.calls)
    steps = Warehouse(tmp_path / "data").sql("select sum(prompt_tokens), sum(cost_usd) from stg_steps").row(0)
    assert told.dollars is not None
    assert steps[0] < told.prompt_tokens.high and is_between(steps[1], told.dollars)


def test_unknown_prices_stay_unknown_in_the_sum_and_free_players_add_no_tokens(tmp_path: Path) -> None:
    models = ["player:random", "openai/one", "openai/two"]
    plan = make_plan(load_config(None, {"scale": "smoke", "games": ["trust"], "models": models, "pathways": ["none"]}))
    estimates = estimate(lacking(plan, tmp_path), {"openai/one": PRICES, "openai/two": None})

    free, one, two = estimates
    assert (free.is_free, free.dollars) == (True, Span(0, 0))
    assert one.dollars is not None and one.dollars.low > 0
    assert two.dollars is None
    whole = total(estimates)
    assert whole.dollars is None
    assert whole.prompt_tokens == one.prompt_tokens.plus(two.prompt_tokens)
    assert whole.calls == free.calls.times(3)
    assert total([free, one]).dollars == one.dollars


def test_what_is_there_is_not_estimated_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Paid("random")
    request = {"games": ["trust"], "pathways": ["none"]}
    estimate_and_run(model, tmp_path / "data", monkeypatch, **request, evaluation_episodes=7)
    known = len(model.taken)

    told = estimate_and_run(model, tmp_path / "data", monkeypatch, **request, evaluation_episodes=14)

    assert told.calls.high == len(model.taken) - known == 2 * 7 * 10  # two checkpoints, ten rounds


@pytest.mark.parametrize("phase", [EXPLORATION, EVALUATION])
@pytest.mark.parametrize("name", names(GAMES))
def test_states_of_other_instances_are_as_long_as_those_seen(name: str, phase: str) -> None:
    game: Any = load_named(GAMES, name, "game").GAME
    config = getattr(game, phase)
    seen = [len(text) for texts in sample(game, config).states for text in texts]

    for seed in range(100, 106):
        rng, state = random.Random(seed), game.reset(config, seed)
        while state.end_reason is None and state.step_index < config.horizon:
            length = len(game.render(game.view(state)))
            assert SHORTER * min(seen) <= length <= LONGER * max(seen)
            state = game.take(state, game.players["random"](game.view(state), rng).action).outcome.state
