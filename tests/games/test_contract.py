"""What every game promises, over all games the registry finds and in both phases.

A new game is tested here unasked. It owes one line to ``hidden.py``: what else could be true behind the same view.
"""

import asyncio
import itertools
import json
import random
import re
from dataclasses import fields, replace
from functools import cache
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from s3gym import registry
from s3gym.games.base import EVALUATION, EXPLORATION, UNUSABLE_ANSWER, USABLE, EpisodeOver, is_next_step
from s3gym.models.scripted import load
from s3gym.protocol.asking import Asker
from s3gym.protocol.rollout import play
from s3gym.protocol.splits import Splits
from s3gym.protocol.verify import differences
from s3gym.records import Episode, Step
from tests.games.episodes import STEPS, Played, by_player, by_texts, follow, played, states
from tests.games.hidden import HIDDEN
from tests.games.texts import hostile_texts, recased, replies, replies_of_any_length, tolerated, turned_down
from tests.programmed import Programmed, part

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
CASE_COUNTS = {"chess"}
"""Games whose notation tells things apart by case: a bishop and a pawn of the b-file."""
TELLTALE = ("score", "reward")
EPISODES_BESIDE = 1_000
INSTANCES = 200
"""Of each phase, looked at for one that both have."""
TEXTS = settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.fixture(scope="module")
def games() -> list[Any]:
    return [registry.load(registry.GAMES, name, "game").GAME for name in registry.names(registry.GAMES)]


@pytest.fixture(params=registry.names(registry.GAMES))
def game(request: pytest.FixtureRequest) -> Any:
    return registry.load(registry.GAMES, request.param, "game").GAME


@pytest.fixture(params=PHASES)
def phase(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def config(game: Any, phase: str) -> Any:
    return getattr(game, phase)


class Moment(NamedTuple):
    """A state that was met, and usable actions in it."""

    state: Any
    view: Any
    actions: list[str]


@cache
def moments(game: Any, config: Any) -> list[Moment]:
    """Some that the random player meets, and two that only a good one may meet."""
    met = [*states(game, config), *states(game, config, player="expert", count=3)[1:]]
    return [Moment(state, game.view(state), named(game, game.view(state))) for state in met]


def named(game: Any, view: Any) -> list[str]:
    """What the players would do, and a sample of what the reader names."""
    rng = random.Random(5)
    options = game.reader.actions(game.render(view))
    texts = [player(view, rng).action for player in game.players.values()]
    texts += rng.sample(options, min(6, len(options)))
    return [text for text in dict.fromkeys(texts) if game.parse(text, view).status in USABLE]


def ended_by_answers(game: Any, config: Any, **changes: Any) -> list[Any]:
    """``config`` with ``changes`` by which an answer can end the episode; none where a mean is all that counts."""
    if game.score_aggregation == "mean":  # giving up after a good step would raise it
        with pytest.raises(ValueError, match=f"{[*changes][0]} .* mean"):
            replace(config, **changes)
        return []
    return [replace(config, **changes)]


@cache
def rollout(game: Any, phase: str, player: str) -> tuple[Episode, list[Step]]:
    """An episode as it is stored: whole at random, its beginning by the expert, who may be slow."""
    config = getattr(game, phase)
    if player == "expert":
        config = replace(config, horizon=min(config.horizon, STEPS))
    asker = Asker(load(f"player:{player}"))
    return asyncio.run(play(game, config, asker, part(phase=phase, seed=9)))


# --- determinism --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def interleaved(games: list[Any]) -> dict[tuple[str, str], list[Played]]:
    """For each game and phase the actions of one episode, played again while a thousand other episodes begin."""
    pairs = [(game, phase) for game in games for phase in PHASES]
    running = {}
    for game, phase in pairs:
        actions = [step.answer for step in played(game, getattr(game, phase), seed=3)]
        running[game.id, phase] = follow(game, getattr(game, phase), 3, by_texts(actions))
    beside = (
        follow(game, getattr(game, phase), seed, by_player(game, "random", seed))
        for seed in itertools.count(100)
        for game, phase in pairs
    )
    found: dict[tuple[str, str], list[Played]] = {key: [] for key in running}
    for turn in range(STEPS):
        for key, episode in running.items():
            found[key] += itertools.islice(episode, 1)
        for other in itertools.islice(beside, EPISODES_BESIDE // STEPS + 1):
            next(other)
        random.seed(turn)  # nothing may draw from the shared generator
    return found


def test_same_seed_and_actions_are_the_same_episode_while_a_thousand_others_run(
    game: Any, phase: str, interleaved: dict[tuple[str, str], list[Played]]
) -> None:
    assert interleaved[game.id, phase] == played(game, getattr(game, phase), seed=3)


def test_a_step_leaves_its_state_as_it_was_and_leads_to_the_same_again(game: Any, config: Any) -> None:
    for state, view, actions in moments(game, config):
        before = game.render(view)
        for text in [*actions[:3], "nonsense"]:
            assert game.take(state, text) == game.take(state, text)
        assert game.view(state) == view
        assert game.render(view) == game.render(game.view(state)) == before


def test_a_player_is_a_function_of_its_view_and_its_generator(game: Any) -> None:
    for name, player in game.players.items():
        view = game.view(game.reset(game.evaluation, 5))
        assert player(view, random.Random(8)) == player(view, random.Random(8)), name


# --- configurations, states and instances -------------------------------------------------------------------


def test_configurations_states_and_views_are_frozen(game: Any, config: Any) -> None:
    for state, view, _ in moments(game, config):
        for value in (config, state, view):
            hash(value)  # a list, a set, a dict or a board inside would have none
        for value in (config, state):
            with pytest.raises(AttributeError):
                setattr(value, fields(value)[0].name, None)


def test_a_configuration_survives_json(game: Any, config: Any) -> None:
    others = ended_by_answers(game, config, unusable_ends=True, end_policy="resign")
    for changed in (config, replace(config, horizon=3), *others):
        text = changed.to_json()
        assert game.read_config(text) == changed
        assert hash(game.read_config(text)) == hash(changed)
        assert game.read_config(text).to_json() == text == json.dumps(json.loads(text), sort_keys=True)


def test_a_configuration_that_no_game_can_have_is_refused(game: Any, config: Any) -> None:
    for change in ({"horizon": 0}, {"end_policy": "give up"}):
        with pytest.raises(ValueError, match=f"{[*change][0]} = .*: expected"):
            replace(config, **change)


def test_phases_are_different_configurations(game: Any) -> None:
    assert game.config_id(game.exploration) != game.config_id(game.evaluation)


def test_a_seed_is_one_instance_and_other_seeds_are_others_unless_shared(game: Any, config: Any) -> None:
    ids = [game.instance_id(game.reset(config, seed)) for seed in range(10)]
    assert ids == [game.instance_id(game.reset(config, seed)) for seed in range(10)]
    if not game.is_instances_shared:
        assert len(set(ids)) >= 8  # in a small game two may meet by chance


def test_exploration_and_evaluation_never_meet_in_an_instance_unless_shared(game: Any) -> None:
    splits = Splits(base_seed=1, exploration_range=(0, 2**31), evaluation_range=(2**31, 2**32))
    explored = splits.exploration(game, game.exploration, 0, INSTANCES)
    held_out = splits.evaluation(game, game.evaluation, 0, INSTANCES)

    first, second = (
        {game.instance_id(game.reset(config, seed)) for seed in seeds}
        for config, seeds in ((game.exploration, explored), (game.evaluation, held_out))
    )
    assert bool(first & second) == game.is_instances_shared


# --- answers ------------------------------------------------------------------------------------------------


@TEXTS
@given(data=st.data())
def test_any_text_is_safe(game: Any, config: Any, data: st.DataObject) -> None:
    moment = data.draw(st.sampled_from(moments(game, config)))
    take_safely(game, config, moment.state, data.draw(replies_of_any_length(moment.actions)))


def test_the_longest_and_the_oddest_texts_are_safe(game: Any, config: Any) -> None:
    seeds = itertools.count()
    state = game.reset(config, next(seeds))
    for text in hostile_texts():
        outcome = take_safely(game, config, state, text)
        state = outcome.state
        if outcome.end_reason or state.step_index == config.horizon:
            state = game.reset(config, next(seeds))


def take_safely(game: Any, config: Any, state: Any, text: str) -> Any:
    """The outcome of a text, when nothing about it is out of place."""
    taken = game.take(state, text)
    low, high = game.reward_range(config)
    assert taken.status in STATUSES
    assert (taken.action is not None) == (taken.status in USABLE)
    assert low <= taken.outcome.reward <= high
    assert_short(taken.outcome.feedback)
    assert taken.outcome.state.step_index == state.step_index + 1
    game.render(game.view(taken.outcome.state)).encode()  # storable: no half of a surrogate pair is echoed
    return taken.outcome


@TEXTS
@given(data=st.data())
def test_parsing_depends_on_text_and_view_alone_and_reads_what_it_wrote_as_it_is(
    game: Any, config: Any, data: st.DataObject
) -> None:
    state, view, actions = data.draw(st.sampled_from(moments(game, config)))
    text = data.draw(replies(actions))

    parsed = game.parse(text, view)

    game.parse(actions[-1], view)  # nothing of it may stay behind
    assert game.parse(text, game.view(state)) == parsed
    if parsed.status in USABLE:
        assert game.parse(parsed.action, view)[:2] == ("ok", parsed.action)


def test_what_players_and_the_reader_name_is_written_as_it_is_stored(game: Any, config: Any) -> None:
    for _, view, actions in moments(game, config):
        assert actions
        for action in actions:
            assert game.parse(action, view)[:2] == ("ok", action)


def test_marks_blanks_commas_and_case_are_tolerated(game: Any, config: Any) -> None:
    for _, view, actions in moments(game, config)[::4]:
        for action in actions:
            for text in (*tolerated(action), *(() if game.id in CASE_COUNTS else recased(action))):
                if text != action:
                    assert game.parse(text, view)[:2] == ("repaired", action), text


def test_prose_and_characters_that_only_look_alike_are_turned_down(game: Any, config: Any) -> None:
    for _, view, actions in moments(game, config)[::4]:
        for action in actions:
            for text in turned_down(action):
                assert game.parse(text, view).status not in USABLE, text


@pytest.mark.parametrize("text", ["", "Let me think.", "?!", "\x00"])
def test_what_is_no_action_at_all_is_unparsable(game: Any, config: Any, text: str) -> None:
    parsed = game.parse(text, game.view(game.reset(config, 1)))
    assert (parsed.status, parsed.action) == ("unparsable", None)
    assert parsed.feedback
    assert_short(parsed.feedback)


def test_a_missing_answer_is_unparsable_and_uses_the_step(game: Any, config: Any) -> None:
    taken = game.take(game.reset(config, 1), None)
    assert (taken.status, taken.action) == ("unparsable", None)
    assert taken.outcome.state.step_index == 1
    assert_short(taken.outcome.feedback)


def test_an_unusable_answer_ends_the_episode_where_the_configuration_says_so(game: Any, config: Any) -> None:
    for changed in (replace(config, unusable_ends=False), *ended_by_answers(game, config, unusable_ends=True)):
        start = game.reset(changed, 1)
        for text in (None, "Let me think.", "END"):
            ended = game.take(start, text).outcome.end_reason
            assert ended == (UNUSABLE_ANSWER if changed.unusable_ends else None)


@pytest.mark.parametrize("text", ["END", "end", " End. "])
def test_end_before_the_end_is_invalid(game: Any, config: Any, text: str) -> None:
    taken = game.take(game.reset(config, 1), text)
    assert (taken.status, taken.action) == ("invalid", None)
    assert taken.outcome.end_reason != "resigned"


def test_end_ends_the_episode_where_resigning_is_allowed(game: Any, config: Any) -> None:
    for changed in ended_by_answers(game, config, end_policy="resign"):
        taken = game.take(game.reset(changed, 1), "END")
        assert (taken.status, taken.outcome.reward, taken.outcome.end_reason) == ("ok", 0.0, "resigned")


def test_a_horizon_has_an_end(game: Any, config: Any) -> None:
    assert replace(config, horizon=config.MOST_STEPS).horizon == config.MOST_STEPS
    for horizon in (0, -1, config.MOST_STEPS + 1, 10**20):
        with pytest.raises(ValueError, match=f"horizon = {horizon}: expected 1 to {config.MOST_STEPS} steps"):
            replace(config, horizon=horizon)


@pytest.mark.parametrize(("name", "value"), [("horizon", "5"), ("horizon", 5.5), ("horizon", True), ("horizon", None)])
def test_a_setting_keeps_its_type(config: Any, name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} = {value!r}: expected int, such as {config.horizon}"):
        config.changed({name: value}, "it")


def test_stepping_a_finished_episode_raises(game: Any, config: Any) -> None:
    start = game.reset(config, 1)
    over = [replace(start, step_index=config.horizon)]
    for changed in ended_by_answers(game, config, unusable_ends=True, end_policy="resign"):
        over += [game.take(game.reset(changed, 1), text).outcome.state for text in ("END", None)]
    for state in over:
        for text in (None, "END", "Let me think.", named(game, game.view(start))[0]):
            with pytest.raises(EpisodeOver, match=game.id):
                game.take(state, text)


# --- rewards, scores and replays ----------------------------------------------------------------------------


@pytest.mark.parametrize("player", ["random", "expert"])
def test_rewards_are_in_the_declared_range(game: Any, phase: str, config: Any, player: str) -> None:
    low, high = game.reward_range(config)
    _, steps = rollout(game, phase, player)
    assert steps and all(low <= (step.verifier_reward or 0.0) <= high for step in steps)
    assert game.smallest_positive_score(config) > 0


@pytest.mark.parametrize("player", ["random", "expert"])
def test_the_declared_aggregate_of_the_rewards_is_the_final_score(game: Any, phase: str, player: str) -> None:
    episode, steps = rollout(game, phase, player)
    rewards = [step.verifier_reward or 0.0 for step in steps]
    total = sum(rewards)
    assert game.score_aggregation in ("sum", "mean")
    assert episode.final_score == pytest.approx(total / len(rewards) if game.score_aggregation == "mean" else total)


@pytest.mark.parametrize("player", ["random", "expert"])
def test_the_verifiers_replay_agrees(game: Any, phase: str, player: str) -> None:
    assert list(differences(game, *rollout(game, phase, player))) == []


def test_the_verifiers_replay_agrees_on_unusable_answers_too(game: Any, phase: str, config: Any) -> None:
    start = game.view(game.reset(config, 9))
    answers = ["Let me think.", *(f"Answer: {action}, Score: 0.5" for action in named(game, start)), "Answer: END"]
    model: Any = Programmed(*answers, *answers)
    episode, steps = asyncio.run(play(game, replace(config, horizon=STEPS), Asker(model), part(phase=phase, seed=9)))
    assert list(differences(game, episode, steps)) == []


# --- what the agent sees ------------------------------------------------------------------------------------


def test_hidden_truth_shows_in_no_text(game: Any, config: Any) -> None:
    assert game.id in HIDDEN, f"tests/games/hidden.py has no entry for {game.id}: add what may be true behind its view"
    for seed in range(4):
        state = game.reset(config, seed)
        other = HIDDEN[game.id].swapped(state)
        assert other != state
        for _ in range(STEPS):
            assert game.view(other) == game.view(state)
            action = HIDDEN[game.id].quiet(state, other)
            if action is None:
                break
            for text in (action, None, "END", "Let me think.", "-1", "(99,99)"):
                assert seen_of(game, other, text) == seen_of(game, state, text)
            state, other = (game.take(twin, action).outcome.state for twin in (state, other))
            if state.end_reason or state.step_index == config.horizon:
                break


def seen_of(game: Any, state: Any, text: str | None) -> tuple[Any, ...]:
    """All that an agent, or one who reads its transcript, sees of an answer."""
    taken = game.take(state, text)
    outcome = taken.outcome
    after = game.view(outcome.state)
    return taken.status, taken.action, outcome.feedback, outcome.end_reason, after, game.render(after)


@pytest.mark.parametrize("player", ["random", "expert"])
def test_observation_and_feedback_carry_no_score_and_no_reward(game: Any, config: Any, player: str) -> None:
    for step in played(game, config, player=player):
        assert step.before and step.after
        assert not any(word in text.lower() for word in TELLTALE for text in (step.before, step.feedback))
        assert_short(step.feedback)


def test_the_view_has_no_field_for_a_score_or_a_reward(game: Any, config: Any) -> None:
    view = game.view(game.reset(config, 1))
    names = getattr(view, "_fields", None) or [field.name for field in fields(view)]
    assert names
    assert not any(word in name for word in TELLTALE for name in names)


def test_observations_are_numbered_up_to_the_horizon(game: Any, config: Any) -> None:
    steps = list(follow(game, config, 1, by_player(game, "random", 1)))
    assert re.search(rf"\b(?:Step|Round) 1 of {config.horizon}\b", steps[0].before)
    for step in steps[: config.horizon - 1]:
        assert is_next_step(step.before, step.after)
    if len(steps) == config.horizon:  # there is no step after the last
        assert not is_next_step(steps[-1].before, steps[-1].after)


def test_rules_are_those_of_the_configuration(game: Any, config: Any) -> None:
    rules = game.rules(config)
    assert re.search(r"^Actions?:", rules, re.M)
    assert str(config.horizon) in re.findall(r"\d+", rules)
    for changed in ended_by_answers(game, config, unusable_ends=True):
        assert game.rules(changed) != game.rules(replace(config, unusable_ends=False))


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
            for fact in game.reader.facts(step.before, step.answer, after):
                assert len(fact) == 3
                assert not any("|" in part or len(part.splitlines()) != 1 for part in fact)
                situation, action, outcome = fact
                seen.setdefault((situation, action), {}).setdefault(outcome, 0)
                seen[situation, action][outcome] += 1
    assert bool(seen) == game.reader.is_learnable


def test_the_reader_is_safe_on_texts_that_are_no_observation(game: Any) -> None:
    state = game.reset(game.evaluation, 1)
    observation = game.render(game.view(state))
    action = game.reader.actions(observation)[0]
    for text in ("", "nothing to see", "0 1 2\n3"):
        assert list(game.reader.facts(text, action, observation)) == []
        assert isinstance(game.reader.glance(text, action), float)
        assert game.reader.choose(text, {}, random.Random(1)).action


# --- the card -----------------------------------------------------------------------------------------------


def test_the_module_docstring_is_a_card_with_all_headings_in_order(game: Any) -> None:
    module = registry.load(registry.GAMES, game.id, "game")
    assert module.GAME is game
    assert game.unit and game.VERSION >= 1
    card = module.__doc__ or ""
    parts = re.split(rf"^({'|'.join(HEADINGS)}):", card, flags=re.M)
    assert tuple(parts[1::2]) == HEADINGS
    assert all(text.strip() for text in parts[2::2])


def test_the_version_history_ends_with_the_version(game: Any) -> None:
    card = registry.load(registry.GAMES, game.id, "game").__doc__ or ""
    history = re.search(r"^Version history:(.*?)^Source:", card, re.M | re.S)
    assert history
    numbers = [int(number) for number in re.findall(r"(?:^|;)\s*(\d+), ", history[1])]
    assert numbers == list(range(1, game.VERSION + 1))


def assert_short(feedback: str) -> None:
    assert len(feedback) <= 160
    assert len(feedback.splitlines()) <= 1
    feedback.encode()
