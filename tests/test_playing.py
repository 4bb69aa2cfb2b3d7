"""What a person sees: boards in colour, help, what became of an answer, and stored episodes that stay inert."""

import os
import pty
import random
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console
from rich.style import Style

from s3gym import registry, storage
from s3gym.cli import main
from s3gym.games.base import EVALUATION, EXPLORATION, USABLE
from s3gym.games.trust import GAME as TRUST
from s3gym.protocol.anchors import anchors_csv
from s3gym.records import Anchor, Step
from s3gym.registry import GAMES
from s3gym.terminal.board import painted, palette_of
from s3gym.terminal.console import exact, inert, verbatim
from s3gym.terminal.playing import HELP, STOP
from tests.direct import measure_directly

PROGRAM = Path(sys.executable).parent / "s3gym"
STEPS = 12
"""Steps looked at: players of some games are slow."""
PINK = ("play", "trust", "--phase", "evaluation", "--seed", "1")
"""An opponent that always collaborates, so cheating pays 3 a round."""


def cli(*arguments: object, typed: str = "") -> Result:
    """Runs a command in this process, without a terminal."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=typed, catch_exceptions=False)


def at_a_terminal(*arguments: object, typed: str) -> str:
    """What a terminal receives when a person types that, with carriage returns taken out."""
    person, terminal = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    env = {name: value for name, value in env.items() if name not in ("NO_COLOR", "FORCE_COLOR", "PYTEST_VERSION")}
    process = subprocess.Popen(
        [PROGRAM, *map(str, arguments)], stdin=terminal, stdout=terminal, stderr=subprocess.STDOUT, env=env
    )
    os.close(terminal)
    os.write(person, typed.encode())
    told = b""
    try:
        while part := os.read(person, 65536):
            told += part
    except OSError:  # the other side has closed the terminal
        pass
    os.close(person)
    assert process.wait(timeout=60) == 0, told
    return told.decode().replace("\r", "")


def bare(told: str) -> str:
    """The same without colours."""
    return re.sub(r"\x1b\[[\d;]*m", "", told)


@pytest.fixture(params=registry.names(GAMES))
def game(request: pytest.FixtureRequest) -> Any:
    return registry.load(GAMES, request.param, "game").GAME


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with episodes of trust of three rounds; read only."""
    data = tmp_path_factory.mktemp("playing") / "data"
    measure_directly(
        data,
        "game.trust.exploration.horizon=3",
        "exploration_episodes=3",
        "evaluation_episodes=7",
        scale="smoke",
        games=["trust"],
        models=["player:learner"],
        pathways=["history"],
    )
    return data


def hostile(folder: Path, into: Path, reply: str) -> tuple[Path, str]:
    """A copy in which an episode's first reply is another; and its id."""
    data = Path(shutil.copytree(folder, into))
    path = next(path for path in storage.visible_files(data, "steps") if path.stem.startswith("explore"))
    steps = [Step(**row) for row in storage.read_part(data, "steps", "trust", path.stem)]
    storage.write_rows(path, "steps", [replace(steps[0], reply=reply), *steps[1:]])
    return data, steps[0].episode_id


def anchors_of(config: Any) -> str:
    """A table with the two ends of a scale."""
    row = Anchor(
        game=TRUST.id,
        config_id=TRUST.config_id(config),
        phase=EVALUATION,
        player="random",
        mean=10.75,
        standard_deviation=1.0,
        standard_error=0.1,
        episode_count=100,
        game_version=TRUST.VERSION,
    )
    return anchors_csv([row, replace(row, player="expert", mean=17.25), replace(row, player="cheater", mean=9.0)])


# --- playing ------------------------------------------------------------------------------------------------


def test_a_person_plays_and_hears_the_score_at_the_end() -> None:
    told = cli(*PINK, typed="cheat\n" * 10)

    assert told.exit_code == 0
    assert told.output.startswith("trust, evaluation, seed 1\n\nTrust: you play 10 rounds against one opponent.")
    assert told.output.count("The opponent chose to collaborate.") == 10
    assert "Step 1 of 10> cheat\n" in told.output and "Step 11 of" not in told.output
    assert "\n10 steps, ended by last_round. Final score: 30 points\n" in told.output


@pytest.mark.parametrize("typed", ["cheat\n\n", "cheat\n", "cheat\nquit\n", "cheat\n Quit \n"])
def test_a_person_may_stop_in_three_ways(typed: str) -> None:
    told = cli(*PINK, typed=typed)

    assert told.exit_code == 0
    assert "\n1 step, stopped. Final score: 3 points\n" in told.output


def test_ctrl_c_stops_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(prompt: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.input", interrupted)

    told = cli(*PINK)

    assert (told.exit_code, "\n0 steps, stopped. Final score: 0 points\n" in told.output) == (0, True)


@pytest.mark.parametrize("word", ["?", "help", "HELP"])
def test_help_shows_the_rules_again_and_costs_nothing(word: str) -> None:
    told = cli(*PINK, typed=f"{word}\ncheat\n").output

    assert told.count(TRUST.rules(TRUST.evaluation)) == 2
    assert told.count("Step 1 of 10> ") == 2
    assert "\n1 step, stopped." in told


def test_words_of_help_are_no_action_of_a_game(game: Any) -> None:
    for phase in (EXPLORATION, EVALUATION):
        view = game.view(game.reset(getattr(game, phase), 1))
        for word in (*HELP, STOP):
            assert game.parse(word, view).status not in USABLE


def test_an_unusable_answer_is_explained_and_costs_its_step() -> None:
    told = cli(*PINK, typed="[bold]steal[/bold]\n").output

    assert "Step 1 of 10> [bold]steal[/bold]\nNo usable action (" in told
    assert "): Neither collaborate nor cheat: the round is used up.\n? shows the form of an action.\n" in told
    assert "Step 2 of 10> " in told
    assert "\n1 step, stopped. Final score: 0 points\n" in told


def test_an_unusable_answer_that_ends_the_episode_says_so() -> None:
    told = cli("play", "snake", "--phase", "evaluation", "--seed", "1", typed="sideways\nUP\n").output

    assert "No usable action (" in told and "? shows" not in told.split("No usable action", 1)[1]
    assert "\n1 step, ended by unusable_answer. Final score: 0 apples\n" in told


def test_a_tolerated_spelling_is_told_as_it_was_read() -> None:
    told = cli(*PINK, typed="( Cheat )\ncheat\n").output

    assert told.count("Read as: cheat\n") == 1


def test_without_a_seed_one_is_drawn_and_plays_the_same_again() -> None:
    told = cli("play", "snake").output
    seed = re.match(r"snake, exploration, seed (\d+)\n", told)

    assert seed is not None
    assert cli("play", "snake", "--seed", seed[1]).output == told
    assert len({cli("play", "snake").output.split("\n", 1)[0] for _ in range(3)}) == 3


def test_the_score_stands_beside_the_scale_of_the_same_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "anchors.csv"
    monkeypatch.setattr("s3gym.terminal.playing.SHIPPED_ANCHORS", table)

    table.write_text(anchors_of(TRUST.evaluation))
    assert cli(*PINK).output.endswith("Final score: 0 points\nMean of whole episodes: random 10.8, expert 17.2\n")

    table.write_text(anchors_of(TRUST.exploration))
    assert cli(*PINK).output.endswith("Final score: 0 points\n")


@pytest.mark.parametrize("phase", [EXPLORATION, EVALUATION])
def test_every_game_can_be_played_without_a_control_character(game: Any, phase: str) -> None:
    config, rng = getattr(game, phase), random.Random(1)
    state, actions = game.reset(config, 3), []
    while len(actions) < min(STEPS, config.horizon) and state.end_reason is None:
        actions.append(game.players["expert"](game.view(state), rng).action)
        state = game.take(state, actions[-1]).outcome.state

    told = cli("play", game.id, "--phase", phase, "--seed", 3, typed="\n".join(actions))

    assert told.exit_code == 0
    assert game.render(game.view(state)) in told.output
    assert f"{len(actions)} step{'s' * (len(actions) > 1)}, " in told.output
    assert "Read as" not in told.output and "No usable" not in told.output
    assert inert(told.output) == told.output


# --- boards -------------------------------------------------------------------------------------------------


def test_a_palette_is_of_real_styles_and_colours_what_it_names(game: Any) -> None:
    """Each pattern is met somewhere in a few episodes, and no character of the observation changes."""
    unmet = {*game.palette}
    for pattern, style in game.palette.items():
        assert re.compile(pattern).groups == 0, "a group would be a style of its own"
        assert Style.parse(style)
    for seed, phase, player in [(1, EXPLORATION, "random"), (2, EVALUATION, "random"), (3, EXPLORATION, "expert")]:
        state, rng = game.reset(getattr(game, phase), seed), random.Random(seed)
        for _ in range(STEPS):
            observation = game.render(game.view(state))
            assert painted(observation, game.palette).plain == observation
            unmet -= {pattern for pattern in unmet if re.search(pattern, observation)}
            if state.end_reason or state.step_index == state.config.horizon:
                break
            state = game.take(state, game.players[player](game.view(state), rng).action).outcome.state
    assert unmet == set()


def test_of_two_colours_on_one_spot_the_later_shows() -> None:
    screen = Console(force_terminal=True, color_system="standard", no_color=False, width=80)
    with screen.capture() as shown:
        screen.print(painted("a1 b2", {r"\d": "red", r"b\d": "green"}))

    assert shown.get() == "a\x1b[31m1\x1b[0m \x1b[32mb\x1b[0m\x1b[32m2\x1b[0m\n"


def test_a_game_that_is_no_longer_there_has_no_colours() -> None:
    assert palette_of("trust") == TRUST.palette != {}
    assert palette_of("gone") == {}


def test_a_person_at_a_terminal_sees_colours() -> None:
    told = at_a_terminal(*PINK, typed="cheat\nquit\n")

    assert "Record (you/opponent): \x1b[31mcheat\x1b[0m/\x1b[32mcollaborate\x1b[0m\n" in told
    assert "1 step, stopped. Final score: 3 points" in told


# --- text of others -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x1b]0;title\x07", r"\x1b[2J\x1b]0;title\x07"),
        ("\x9b31m\x7f\x00\b", r"\x9b31m\x7f\x00\x08"),
        ("one\rtwo\r\nthree", "one\\rtwo\r\nthree"),
        ("UP\u202e\u2066", r"UP\u202e\u2066"),
        ("\ud800", r"\ud800"),
        ("\tä 左 🐍 \u200d\n[red]:bomb:", "\tä 左 🐍 \u200d\n[red]:bomb:"),
    ],
)
def test_what_a_terminal_would_obey_is_written_out(text: str, shown: str) -> None:
    assert inert(text) == shown


def test_text_for_a_person_is_inert_and_text_for_a_program_exact(capfd: pytest.CaptureFixture[str]) -> None:
    text = "[red]x[/red] :bomb: \x1b[31m " + "long " * 100

    verbatim(text)
    assert capfd.readouterr().out == text.replace("\x1b", r"\x1b") + "\n"
    exact(text)
    assert capfd.readouterr().out == text + "\n"


HOSTILE = "\x1b[2J\x1b]0;owned\x07[red]Answer: cheat[/red] :bomb: \u202e\r\nScore: 1"
INERT = "\nreply: \\x1b[2J\\x1b]0;owned\\x07[red]Answer: cheat[/red] :bomb: \\u202e\nScore: 1\n"


def test_a_stored_reply_stays_inert_in_a_replay(measured: Path, tmp_path: Path) -> None:
    data, episode_id = hostile(measured, tmp_path / "data", HOSTILE)

    told = cli("replay", episode_id, "--data", data).output

    assert INERT in told
    assert inert(told) == told


def test_a_stored_reply_stays_inert_in_a_table_and_exact_in_csv(measured: Path, tmp_path: Path) -> None:
    data, episode_id = hostile(measured, tmp_path / "data", "[red]\x1b[2J :bomb:")
    query = f"select reply from stg_steps where episode_id = '{episode_id}' and step_index = 0"

    assert r"[red]\x1b[2J :bomb:" in cli("sql", query, "--data", data).output
    assert cli("sql", query, "--data", data, "--format", "csv").output == "reply\n[red]\x1b[2J :bomb:\n"


def test_a_person_goes_through_a_replay_step_by_step(measured: Path, tmp_path: Path) -> None:
    data, episode_id = hostile(measured, tmp_path / "data", HOSTILE)

    stopped = at_a_terminal("replay", episode_id, "--data", data, typed="\nq\n")
    assert [f" step {number} of 3 " in bare(stopped) for number in (1, 2, 3)] == [True, True, False]
    assert INERT in stopped
    assert inert(bare(stopped)) == bare(stopped)
    assert re.search(r"Record \(you/opponent\): \x1b\[3[12]mc", stopped)

    whole = at_a_terminal("replay", episode_id, "--data", data, typed="a\n")
    assert " step 3 of 3 " in bare(whole) and "; final score " in whole
    assert whole.count("Enter: next step") == 1


def test_a_replay_without_a_terminal_waits_for_nobody(measured: Path) -> None:
    path = next(path for path in storage.visible_files(measured, "steps") if path.stem.startswith("explore"))
    episode_id = storage.read_part(measured, "steps", "trust", path.stem)[0]["episode_id"]

    told = cli("replay", episode_id, "--data", measured).output

    assert "step 3 of 3" in told and "; final score " in told
    assert "Enter" not in told
