"""What every game promises, over all games the registry finds."""

import itertools
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from s3gym import registry
from s3gym.games.base import EVALUATION, EXPLORATION, USABLE, EpisodeOver

GAMES = registry.names("s3gym.games")
PHASES = (EXPLORATION, EVALUATION)
HEADINGS = (
    "Rules",
    "Observation",
    "Actions",
    "Verifier reward",
    "Episode end",
    "Instances and splits",
    "Version history",
    "Source",
)
STATUSES = {"ok", "repaired", "unparsable", "invalid", "illegal", "ambiguous"}
STEPS = 12
"""Steps looked at where whole episodes would tell no more; experts of some games are slow."""
TELLTALE = ("score", "reward")
Choose = Callable[[Any, str], str | None]
"""From view and observation to the answer; None stops."""


class Played(NamedTuple):
    """One step as seen from outside."""

    before: str
    action: str
    status: str
    reward: float
    feedback: str
    end_reason: str | None
    after: str


@pytest.fixture(params=GAMES)
def game(request: pytest.FixtureRequest) -> Any:
    return registry.load("s3gym.games", request.param, "game").GAME


@pytest.fixture(params=PHASES)
def config(request: pytest.FixtureRequest, game: Any) -> Any:
    return getattr(game, request.param)


def follow(game: Any, config: Any, seed: int, choose: Choose) -> Iterator[Played]:
    """Plays to the end, to the horizon, or until ``choose`` has nothing more to say."""
    state = game.reset(config, seed)
    for _ in range(config.horizon):
        view = game.view(state)
        before = game.render(view)
        text = choose(view, before)
        if text is None:
            return
        taken = game.take(state, text)
        outcome = taken.outcome
        state = outcome.state
        after = game.render(game.view(state))
        yield Played(before, text, taken.status, outcome.reward, outcome.feedback, outcome.end_reason, after)
        if outcome.end_reason:
            return


def by_texts(texts: Iterable[str]) -> Choose:
    rest = iter(texts)
    return lambda view, before: next(rest, None)


def by_player(game: Any, name: str, seed: int) -> Choose:
    rng = random.Random(seed)
    return lambda view, before: game.players[name](view, rng).action


def played(game: Any, config: Any, seed: int = 1, player: str = "random", count: int = STEPS) -> list[Played]:
    return list(itertools.islice(follow(game, config, seed, by_player(game, player, seed)), count))


def hostile_texts() -> list[str]:
    rng = random.Random(0)
    marks = "ABcx01,.;:()[]{}<>/*-+#=?!'\"`|\\ \n\tLEFTflaguncover"
    return [
        "",
        " ",
        "\n\r\n",
        "\x00",
        "A" * 1_000_000,
        "9" * 5_000,
        "(" * 5_000 + ")" * 5_000,
        "-1",
        "(-1,-1)",
        "(99999999999999999999,0)",
        "1e309 nan",
        "0/0",
        "٣ ٤",
        "²³",
        "ﬁ ſ ı İ",
        "左 ⬅️ 🐍",
        "\ud800",
        "é\u0301\u202e",
        "%s %d {0} {x}",
        "__import__('os')",
        "\x1b[31mUP\x1b[0m",
        bytes(range(256)).decode("latin-1"),
        *("".join(rng.choice(marks) for _ in range(rng.randrange(1, 30))) for _ in range(100)),
        *("".join(chr(rng.randrange(0xD800)) for _ in range(12)) for _ in range(50)),
    ]


# --- instances and determinism ------------------------------------------------------------------------------


def test_same_seed_and_actions_are_the_same_episode_whatever_runs_beside_it(game: Any, config: Any) -> None:
    alone = played(game, config, seed=3)
    again = follow(game, config, 3, by_texts(step.action for step in alone))
    beside = follow(game, config, 4, by_player(game, "random", 4))
    interleaved = []
    for step in again:
        interleaved.append(step)
        next(beside, None)
        random.seed(len(interleaved))  # nothing may draw from the shared generator
    assert interleaved == alone


def test_a_player_is_a_function_of_its_view_and_its_generator(game: Any) -> None:
    for name, player in game.players.items():
        view = game.view(game.reset(game.evaluation, 5))
        assert player(view, random.Random(8)) == player(view, random.Random(8)), name


def test_a_seed_is_one_instance_and_other_seeds_are_others_unless_shared(game: Any, config: Any) -> None:
    ids = [game.instance_id(game.reset(config, seed)) for seed in range(10)]
    assert ids == [game.instance_id(game.reset(config, seed)) for seed in range(10)]
    if not game.is_instances_shared:
        assert len(set(ids)) == len(ids)


def test_phases_are_different_configurations(game: Any) -> None:
    assert game.config_id(game.exploration) != game.config_id(game.evaluation)


# --- answers ------------------------------------------------------------------------------------------------


def test_any_text_is_safe(game: Any, config: Any) -> None:
    low, high = game.reward_range(config)
    texts = by_texts(hostile_texts())
    for seed in itertools.count():
        steps = list(follow(game, config, seed, texts))
        if not steps:
            break  # all texts are spent
        for step in steps:
            assert step.status in STATUSES
            assert low <= step.reward <= high
            assert_short(step.feedback)


def test_a_missing_answer_is_unparsable_and_uses_the_step(game: Any, config: Any) -> None:
    taken = game.take(game.reset(config, 1), None)
    assert (taken.status, taken.action) == ("unparsable", None)
    assert_short(taken.outcome.feedback)


@pytest.mark.parametrize("text", ["END", "end", " End. "])
def test_end_before_the_end_is_invalid(game: Any, config: Any, text: str) -> None:
    taken = game.take(game.reset(config, 1), text)
    assert (taken.status, taken.action) == ("invalid", None)
    assert taken.outcome.end_reason != "resigned"


def test_end_ends_the_episode_where_resigning_is_allowed(game: Any, config: Any) -> None:
    taken = game.take(game.reset(replace(config, end_policy="resign"), 1), "END")
    assert (taken.status, taken.outcome.reward, taken.outcome.end_reason) == ("ok", 0.0, "resigned")


def test_stepping_a_finished_episode_raises(game: Any, config: Any) -> None:
    start = game.reset(replace(config, end_policy="resign"), 1)
    resigned = game.take(start, "END").outcome.state
    out_of_steps = replace(start, step_index=config.horizon)
    for over in (resigned, out_of_steps):
        with pytest.raises(EpisodeOver, match=game.id):
            game.take(over, None)


# --- rewards and what the agent sees ------------------------------------------------------------------------


@pytest.mark.parametrize("player", ["random", "expert"])
def test_rewards_stay_in_the_declared_range_and_make_the_final_score(game: Any, config: Any, player: str) -> None:
    low, high = game.reward_range(config)
    rewards = [step.reward for step in played(game, config, player=player)]
    assert all(low <= reward <= high for reward in rewards)
    total = sum(rewards)
    assert game.score_aggregation in ("sum", "mean")
    expected = total / len(rewards) if game.score_aggregation == "mean" else total
    assert game.final_score(rewards) == pytest.approx(expected)
    assert game.smallest_positive_score(config) > 0


@pytest.mark.parametrize("player", ["random", "expert"])
def test_observation_and_feedback_carry_no_score_and_no_reward(game: Any, config: Any, player: str) -> None:
    for step in played(game, config, player=player):
        assert step.before and step.after
        assert not any(word in text.lower() for word in TELLTALE for text in (step.before, step.feedback))
        assert_short(step.feedback)


def test_the_view_has_no_field_for_a_score_or_a_reward(game: Any, config: Any) -> None:
    view = game.view(game.reset(config, 1))
    fields = getattr(view, "_fields", None) or getattr(type(view), "__slots__", None) or vars(view)
    assert fields
    assert not any(word in field for word in TELLTALE for field in fields)


def test_a_view_keeps_showing_the_moment_it_was_taken(game: Any, config: Any) -> None:
    state = game.reset(config, 1)
    rng = random.Random(1)
    for _ in range(STEPS):
        view = game.view(state)
        before = game.render(view)
        outcome = game.take(state, game.players["expert"](view, rng).action).outcome
        assert game.render(view) == before
        if outcome.end_reason:
            break
        state = outcome.state


def test_rules_state_the_form_of_an_action(game: Any, config: Any) -> None:
    assert "Action" in game.rules(config)


# --- players ------------------------------------------------------------------------------------------------


def test_every_player_gives_actions_that_parse_and_estimates_in_range(game: Any, config: Any) -> None:
    assert {"random", "expert"} <= set(game.players)
    low, high = game.reward_range(config)
    for name, player in game.players.items():
        state, rng = game.reset(config, 6), random.Random(6)
        for _ in range(min(STEPS, config.horizon)):
            view = game.view(state)
            move = player(view, rng)
            # A uniform player may draw an action that the rules name but do not allow here: a reversal.
            is_named = name != "expert" and move.action in game.reader.actions(game.render(view))
            assert game.parse(move.action, view).status in USABLE or is_named, (name, move.action)
            assert move.self_score is None or low <= move.self_score <= high, (name, move)
            outcome = game.take(state, move.action).outcome
            if outcome.end_reason:
                break
            state = outcome.state


# --- the learner's eyes -------------------------------------------------------------------------------------


def test_the_reader_works_on_every_observation(game: Any, config: Any) -> None:
    seen: dict[tuple[str, str], dict[str, int]] = {}
    rng = random.Random(7)
    low, high = game.reward_range(config)

    def learn_and_choose(view: Any, before: str) -> str:
        names = game.reader.actions(before)
        assert names and names == game.reader.actions(before)
        assert all(isinstance(game.reader.glance(before, name), float) for name in names)
        move = game.reader.choose(before, seen, rng)
        assert game.parse(move.action, view).status in USABLE or move.action in names
        assert move.self_score is None or low <= move.self_score <= high
        return str(move.action)

    for seed in range(3):
        for step in itertools.islice(follow(game, config, seed, learn_and_choose), STEPS):
            after = f"{step.feedback}\n{step.after}" if step.feedback else step.after
            for fact in game.reader.facts(step.before, step.action, after):
                assert len(fact) == 3
                assert not any("|" in part or len(part.splitlines()) != 1 for part in fact)
                situation, action, outcome = fact
                seen.setdefault((situation, action), {}).setdefault(outcome, 0)
                seen[situation, action][outcome] += 1
    assert seen


def test_the_reader_is_safe_on_texts_that_are_no_observation(game: Any) -> None:
    state = game.reset(game.evaluation, 1)
    observation = game.render(game.view(state))
    action = game.reader.actions(observation)[0]
    for text in ("", "nothing to see", "0 1 2\n3"):
        assert list(game.reader.facts(text, action, observation)) == []
        assert isinstance(game.reader.glance(text, action), float)
        assert game.reader.choose(text, {}, random.Random(1)).action


# --- the card -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GAMES)
def test_the_module_docstring_is_a_card_with_all_headings_in_order(name: str) -> None:
    module = registry.load("s3gym.games", name, "game")
    lines = (module.__doc__ or "").splitlines()
    found = [line.split(":", 1)[0] for line in lines if line.split(":", 1)[0] in HEADINGS]
    assert found == list(HEADINGS)
    assert module.GAME.id == name
    assert module.GAME.VERSION >= 1
    assert module.GAME.unit


def assert_short(feedback: str) -> None:
    assert len(feedback) <= 160
    assert len(feedback.splitlines()) <= 1
