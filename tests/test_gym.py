"""The Gymnasium view: the checker's demands, and that it is the game itself and nothing else."""

import random
import subprocess
import sys
import warnings
from typing import Any

import gymnasium
import pytest
from gymnasium.error import InvalidAction, ResetNeeded, UnsupportedMode
from gymnasium.utils.env_checker import check_env

from s3gym import registry
from s3gym.games.base import EVALUATION, EXPLORATION, EpisodeOver
from s3gym.gym import env_id
from s3gym.protocol import splits
from s3gym.registry import GAMES, UnknownName
from s3gym.transcript import env_text

PHASES = (EXPLORATION, EVALUATION)
STEPS = 12
"""Steps looked at: players of some games are slow."""


def make(game: str, **settings: Any) -> Any:
    return gymnasium.make(env_id(game), **settings)


@pytest.fixture(params=registry.names(GAMES))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=PHASES)
def phase(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# --- the interface ------------------------------------------------------------------------------------------


def test_the_checker_finds_nothing_to_say(name: str, phase: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make(name, phase=phase, render_mode="ansi").unwrapped)


def test_an_id_is_the_games_in_camel_case() -> None:
    assert env_id("snake") == "s3gym/Snake-v0"
    assert env_id("latent_chess") == "s3gym/LatentChess-v0"


def test_gymnasium_imports_the_module_that_an_id_names() -> None:
    code = "import gymnasium; print(gymnasium.make('s3gym.gym:s3gym/Snake-v0', horizon=5).reset(seed=1)[0])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert told.stdout.startswith("Step 1 of 5. Heading: UP.\n")
    assert told.stderr == ""


def test_without_gymnasium_only_the_view_is_missing_and_says_what_to_install() -> None:
    code = (
        "import sys\nsys.modules['gymnasium'] = None\n"
        "import s3gym, s3gym.cli, s3gym.terminal.playing, s3gym.verification\n"
        "try:\n    import s3gym.gym\nexcept ModuleNotFoundError as error:\n    print(error)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert "gymnasium" in told and "install s3gym[gym]" in told


def test_a_wrong_request_names_what_is_there() -> None:
    with pytest.raises(UnknownName, match="Did you mean exploration"):
        make("snake", phase="explore")
    with pytest.raises(ValueError, match="horizon = '5': expected int, such as 64"):
        make("snake", horizon="5")
    with pytest.raises(UnknownName, match="unknown setting of snake 'horizn'. Did you mean horizon"):
        make("snake", horizn=3)
    with pytest.raises(UnsupportedMode, match="expected None or 'ansi'"), pytest.warns(UserWarning):
        make("snake", render_mode="rgb_array")


def test_several_run_side_by_side() -> None:
    both = gymnasium.make_vec(env_id("trust"), num_envs=2, vectorization_mode="sync", phase=EVALUATION)
    both.reset(seed=0)

    # seed 0 is copycat and seed 1 is pink: both answer cheating with their opening, which is to collaborate
    observations, rewards, *_ = both.step(("cheat", "cheat"))
    assert list(rewards) == [3.0, 3.0]
    # now copycat pays back, pink never does
    _, rewards, *_ = both.step(("cheat", "cheat"))
    assert list(rewards) == [0.0, 3.0]
    assert observations[0].startswith("Feedback: The opponent chose to collaborate.\nRound 2 of 10.\n")


# --- the same game ------------------------------------------------------------------------------------------


def test_it_is_the_game_as_played_without_it(name: str, phase: str) -> None:
    game = registry.load(GAMES, name, "game").GAME
    config, rng = getattr(game, phase), random.Random(2)
    env = make(name, phase=phase, render_mode="ansi")
    observation, info = env.reset(seed=4)
    state = game.reset(config, 4)

    assert observation == env.render() == game.render(game.view(state))
    assert info["rules"] == game.rules(config)
    assert game.read_config(info["config"]) == config
    assert (info["seed"], info["instance_id"]) == (4, game.instance_id(state))
    assert {info[key] for key in ("action_status", "action", "feedback", "end_reason")} == {None}
    for index in range(min(STEPS, config.horizon)):
        action = game.players["random"](game.view(state), rng).action if index % 4 else "no action of any game"
        assert action in env.action_space
        taken = game.take(state, action)
        state = taken.outcome.state
        observation, reward, terminated, truncated, info = env.step(action)

        assert observation in env.observation_space
        assert observation == env.render()
        assert observation == env_text(taken.outcome.feedback, game.render(game.view(state)))
        assert reward == taken.outcome.reward
        assert terminated == (taken.outcome.end_reason is not None)
        assert (info["action_status"], info["action"]) == (taken.status, taken.action)
        assert (info["feedback"], info["end_reason"]) == (taken.outcome.feedback, taken.outcome.end_reason)
        if terminated or truncated:
            break


def test_experts_write_actions_of_the_space_and_see_observations_of_the_space(name: str, phase: str) -> None:
    game = registry.load(GAMES, name, "game").GAME
    config, rng = getattr(game, phase), random.Random(2)
    env = make(name, phase=phase).unwrapped
    state = game.reset(config, 5)
    for _ in range(min(STEPS, config.horizon)):
        assert game.render(game.view(state)) in env.observation_space
        action = game.players["expert"](game.view(state), rng).action
        assert action in env.action_space
        state = game.take(state, action).outcome.state
        if state.end_reason:
            break


def test_a_large_setting_widens_the_observation_space() -> None:
    env = make("latent_chess", history=100)
    observation, _ = env.reset(seed=1)

    assert len(observation) > 5 * len(make("latent_chess").reset(seed=1)[0])
    assert observation in env.observation_space


def test_a_long_record_stays_in_the_observation_space() -> None:
    env = make("latent_chess", horizon=200, pieces=26)
    first, _ = env.reset(seed=1)
    over = False
    while not over:
        observation, _, terminated, truncated, _ = env.step("A:(0,0)")
        over = terminated or truncated

    assert len(observation) > len(first) + 200 * 26 * len("(1,1)")
    assert observation in env.observation_space


# --- seeds --------------------------------------------------------------------------------------------------


def test_a_seed_names_the_instance(name: str, phase: str) -> None:
    env = make(name, phase=phase)
    first, info = env.reset(seed=11)
    drawn = env.reset()[1]

    assert env.reset(seed=11) == (first, info)
    assert env.reset()[1] == drawn, "what follows a seed is drawn from it"
    assert env.reset(seed=drawn["seed"])[1]["instance_id"] == drawn["instance_id"]


def test_unseeded_episodes_differ_and_keep_to_instances_of_the_phase(name: str, phase: str) -> None:
    env = make(name, phase=phase)
    env.reset(seed=1)
    infos = [env.reset()[1] for _ in range(6)]

    assert len({info["seed"] for info in infos}) == 6
    if not env.unwrapped.game.is_instances_shared:
        assert {splits.phase_of(info["instance_id"]) for info in infos} == {phase}


def test_a_phase_without_instances_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("s3gym.gym.phase_of", lambda instance_id: EVALUATION)

    with pytest.raises(splits.SplitError, match="none of 1000 instances is for exploration; give reset a seed"):
        make("snake").reset()


# --- ends ---------------------------------------------------------------------------------------------------


def test_the_horizon_truncates_and_a_rule_terminates() -> None:
    cut = make("snake", horizon=2)
    cut.reset(seed=1)
    assert cut.step("UP")[2:4] == (False, False)
    assert cut.step("UP")[2:4] == (False, True)

    strict = make("snake", phase=EVALUATION)
    strict.reset(seed=1)
    _, _, terminated, truncated, info = strict.step("sideways")
    assert (terminated, truncated, info["end_reason"]) == (True, False, "unusable_answer")

    last_round = make("trust", horizon=1)  # a rule of trust ends it in the step that is also the last
    last_round.reset(seed=1)
    assert last_round.step("cheat")[2:4] == (True, False)

    resigning = make("snake", end_policy="resign")
    resigning.reset(seed=1)
    assert resigning.step("END")[4]["end_reason"] == "resigned"


def test_a_step_before_the_start_or_after_the_end_needs_a_reset() -> None:
    env = make("snake", horizon=1)
    for early in (env, env.unwrapped):
        with pytest.raises(ResetNeeded):
            early.step("UP")
    env.reset(seed=1)
    env.step("UP")
    with pytest.raises(ResetNeeded, match="no step after the horizon") as caught:
        env.step("UP")
    assert isinstance(caught.value.__cause__, EpisodeOver)

    env.reset()
    assert env.step("UP")[3]


@pytest.mark.parametrize("text", ["", "A" * 100_000, "\x00", "\x1b[31mUP", "左 🐍", "\ud800"])
def test_a_text_outside_the_action_space_is_safe(name: str, text: str) -> None:
    env = make(name)
    env.reset(seed=1)

    observation, reward, *_, info = env.step(text)

    assert info["action"] is None
    assert observation in env.observation_space
    assert isinstance(reward, float)


@pytest.mark.parametrize("thing", [None, 3, b"UP", ["UP"]])
def test_what_is_no_text_is_refused_and_costs_nothing(thing: Any) -> None:
    env = make("snake", horizon=1)
    env.reset(seed=1)

    with pytest.raises(InvalidAction, match="an action is a text, got"):
        env.step(thing)
    assert env.step("UP")[3]
