"""``bench games``: what is counted and compared. How fast anything is, no test says."""

import json
import random
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from s3gym.bench import _textarena_probe as probe
from s3gym.bench.games import Moment, Parts, Pass, Speed, measure, play, time_parts
from s3gym.bench.reference import REFERENCES, compare
from s3gym.cli import main
from s3gym.games.trust import GAME, OPPONENTS, Trust
from s3gym.registry import GAMES, names
from s3gym.terminal.benching import ratio_text

MATCH = GAME.evaluation.horizon


def bench(*arguments: object) -> Result:
    """Runs ``s3gym bench games`` on few steps of trust."""
    few = ["bench", "games", "--game", "trust", "--steps", 20, "--repeat", 1]
    return CliRunner(env={"COLUMNS": "300"}).invoke(main, [str(argument) for argument in (*few, *arguments)])


def speed(loop: float = 1.0, prompt: float = 1.0, game: str = "trust", phase: str = "evaluation") -> Speed:
    """Of so many times the reference's published figures for trust: 80,400 and 45,100."""
    passes = Pass(80_400, 8_040, 1 / loop), Pass(45_100, 4_510, 1 / prompt)
    return Speed(game, phase, *passes, Parts(1.0, 2.0, 3.0, 4.0))


# --- a pass -------------------------------------------------------------------------------------------------


def test_a_pass_ends_with_the_first_episode_that_reaches_the_steps() -> None:
    played = play(GAME, GAME.evaluation, 2 * MATCH + 5)

    assert (played.step_count, played.episode_count) == (3 * MATCH, 3)


def test_a_pass_that_is_out_of_time_has_played_one_whole_episode() -> None:
    played = play(GAME, GAME.evaluation, 1_000_000, seconds=0.0)

    assert (played.step_count, played.episode_count) == (MATCH, 1)


def test_episodes_are_seeded_0_1_2_and_every_pass_plays_the_same_with_texts_or_without() -> None:
    bare: list[Moment] = []
    shown: list[Moment] = []

    play(GAME, GAME.evaluation, 3 * MATCH, moments=bare)
    play(GAME, GAME.evaluation, 3 * MATCH, is_shown=True, moments=shown)

    assert [state.opponent for state, _, _ in bare if state.step_index == 0] == [*OPPONENTS[:3]]
    assert bare == shown
    assert len({action for _, _, action in bare}) == 2


class Counted(Trust):
    """Trust that counts what is asked of it."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def reset(self, *given: Any) -> Any:
        self.calls["reset"] += 1
        return super().reset(*given)

    def take(self, *given: Any) -> Any:
        self.calls["take"] += 1
        return super().take(*given)

    def render(self, *given: Any) -> str:
        self.calls["render"] += 1
        return super().render(*given)

    def rules(self, *given: Any) -> str:
        self.calls["rules"] += 1
        return super().rules(*given)


@pytest.mark.parametrize(
    ("is_shown", "texts"), [(False, {}), (True, {"render": 2 * MATCH, "rules": 2})], ids=["loop", "loop + prompt"]
)
def test_texts_are_an_observation_a_step_and_the_rules_once_an_episode(is_shown: bool, texts: dict[str, int]) -> None:
    game = Counted()

    play(game, game.evaluation, 2 * MATCH, is_shown=is_shown)

    assert game.calls == {"reset": 2, "take": 2 * MATCH, **texts}


def test_parts_are_timed_over_all_that_a_pass_plays() -> None:
    game = Counted()

    parts = time_parts(game, game.evaluation, 2 * MATCH)

    # one pass records: 2 resets, 20 steps; the parts do it all again, and the texts
    assert game.calls == {"reset": 4, "take": 4 * MATCH, "render": 2 * MATCH, "rules": 2}
    assert sum(parts.shares().values()) == pytest.approx(1.0)


def test_each_repetition_is_reported() -> None:
    done: list[None] = []

    measured = measure(GAME, "exploration", 1, 3, lambda: done.append(None))

    assert len(done) == 3
    assert (measured.game, measured.phase, measured.loop.step_count) == ("trust", "exploration", MATCH)


# --- arithmetic ---------------------------------------------------------------------------------------------


def test_rates_and_shares() -> None:
    measured = Speed("trust", "evaluation", Pass(30, 3, 0.5), Pass(30, 3, 2.0), Parts(0.1, 0.2, 0.3, 0.4))

    assert measured.loop.steps_per_second == 60  # 30 / 0.5
    assert measured.prompt.steps_per_second == 15  # 30 / 2
    assert measured.resets_per_second == pytest.approx(30)  # 3 / 0.1
    assert measured.parts.shares() == pytest.approx({"reset": 0.1, "player": 0.2, "step": 0.3, "text": 0.4})


def test_the_aims_are_the_loop_of_the_reference_and_twice_its_loop_with_prompts() -> None:
    just, below = compare(speed(loop=1.0, prompt=2.0)), compare(speed(loop=0.99, prompt=1.99))

    assert just is not None and below is not None
    assert (just.loop_ratio, just.prompt_ratio) == (1.0, 2.0)
    assert just.is_loop_target_reached and just.is_prompt_target_reached
    assert not below.is_loop_target_reached and not below.is_prompt_target_reached
    assert ratio_text(just.prompt_ratio, True) == "2.00x reached"
    assert ratio_text(below.loop_ratio, False) == "0.99x missed"


def test_nothing_is_compared_where_the_reference_has_no_figure() -> None:
    assert compare(speed(game="latent_chess")) is None
    assert compare(speed(phase="exploration")) is None
    assert set(REFERENCES) == {"snake", "tetris", "trust", "minesweeper", "nullify", "pvz"}


# --- the command --------------------------------------------------------------------------------------------


def test_the_table_names_the_game_its_ratios_and_the_host() -> None:
    told = bench()

    assert told.exit_code == 0
    for text in ("trust", "40 rounds", "80,400", "45,100", "aim 1x", "aim 2x", "resets per second", "Host: "):
        assert text in told.output
    assert "TextArena" not in told.output


def test_json_says_everything() -> None:
    told = json.loads(bench("--format", "json").stdout)

    (game,) = told["games"]
    assert (game["game"], game["phase"], game["step_count"], game["episode_count"]) == ("trust", "evaluation", 20, 2)
    assert game["reference"]["loop_ratio"] == pytest.approx(game["loop_steps_per_second"] / 80_400)
    assert game["reference"]["prompt_ratio"] == pytest.approx(game["prompt_steps_per_second"] / 45_100)
    assert set(game["shares"]) == {"reset", "player", "step", "text"}
    assert told["host"]["calibration_best_per_second"] >= told["host"]["calibration_worst_per_second"] > 0
    assert told["host"]["python"].endswith(".".join(map(str, sys.version_info[:3])))
    assert told["host"]["processor"]
    assert told["textarena"] is None


def test_exploration_is_shown_without_a_comparison() -> None:
    told = json.loads(bench("--phase", "exploration", "--format", "json").stdout)

    assert (told["games"][0]["phase"], told["games"][0]["reference"]) == ("exploration", None)


def test_all_games_are_timed_unless_some_are_named() -> None:
    told = CliRunner().invoke(main, ["bench", "games", "--steps", "1", "--repeat", "1", "--format", "json"])

    assert [game["game"] for game in json.loads(told.stdout)["games"]] == names(GAMES)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["games", "--game", "sanke"], "unknown game 'sanke'. Did you mean snake"),
        (["gmaes"], "unknown command 'gmaes'. Did you mean games"),
        (["games", "--repeat", "0"], "0 is not in the range"),
        (["games", "--env", "somewhere"], "give --textarena as well"),
    ],
    ids=" ".join,
)
def test_a_wrong_request_is_told(arguments: list[str], told: str) -> None:
    result = CliRunner().invoke(main, ["bench", *arguments])

    assert result.exit_code == 2
    assert told in result.output


# --- TextArena beside it ------------------------------------------------------------------------------------


def interpreter(folder: Path, script: str) -> Path:
    """An environment whose Python is a shell script."""
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    return folder


def test_without_textarena_the_rest_is_shown_and_it_is_said_what_to_do(tmp_path: Path) -> None:
    env = interpreter(tmp_path / "env", "echo 'no matching distribution' >&2; exit 1")

    told = bench("--textarena", "--env", env)

    assert told.exit_code == 1
    assert "40 rounds" in told.stdout
    assert "could not install TextArena: no matching distribution" in told.stderr
    assert "check the network" in told.stderr


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")

    told = bench("--textarena", "--env", tmp_path, "--format", "json")

    assert told.exit_code == 1
    assert "is not an environment of Python" in told.stderr
    assert json.loads(told.stdout)["textarena"] is None
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_textarena_stands_beside_the_games_it_has(tmp_path: Path) -> None:
    row = {"game": "trust", "environment": "E-v0", "size": "ten rounds", "error": None}
    ran = {**row, "loop": [100, 10, 2.0], "prompt": [100, 10, 4.0]}
    failed = {**row, "loop": None, "prompt": None, "error": "SyntaxError: too new"}
    answer = json.dumps({"version": "9.9", "rows": [ran, failed]})
    env = interpreter(tmp_path / "env", f"[ \"$2\" = -c ] || echo '{answer}'")

    table = bench("--textarena", "--env", env)
    told = json.loads(bench("--textarena", "--env", env, "--format", "json").stdout)["textarena"]

    assert table.exit_code == 0
    assert "TextArena 9.9" in table.output and "cannot run: SyntaxError: too new" in table.output
    assert [game["loop_steps_per_second"] for game in told["games"]] == [50.0, None]  # 100 / 2
    assert [game["prompt_steps_per_second"] for game in told["games"]] == [25.0, None]  # 100 / 4
    assert told["games"][1]["error"] == "SyntaxError: too new"


class TwoSided:
    """Two rounds of talk, talk, choice, choice, as TextArena's dilemma has them."""

    def reset(self, num_players: int, seed: int) -> None:
        self.answers: list[str] = []
        self.texts = 0
        self._turn()

    def get_observation(self) -> None:
        self.texts += 1

    def step(self, answer: str) -> tuple[bool, dict[str, Any]]:
        self.answers.append(answer)
        self._turn()
        return len(self.answers) == 8, {}

    def _turn(self) -> None:
        turn = len(self.answers)
        phase = "conversation" if turn % 4 < 2 else "decision"
        self.state = SimpleNamespace(current_player_id=turn % 2, game_state={"phase": phase})


@pytest.mark.parametrize(("suffix", "texts"), [("-raw", 0), ("", 2)], ids=["loop", "loop + prompt"])
def test_textarena_steps_are_the_decisions_of_one_player(
    monkeypatch: pytest.MonkeyPatch, suffix: str, texts: int
) -> None:
    made: list[TwoSided] = []

    def make(name: str, **settings: int) -> TwoSided:
        made.append(TwoSided())
        return made[-1]

    monkeypatch.setitem(sys.modules, "textarena", SimpleNamespace(make=make))

    steps, episodes, _ = probe._play("trust", suffix, 3, 60.0)

    assert (steps, episodes) == (4, 2)  # 8 answers an episode, 2 of them choices of player 0
    assert [env.texts for env in made] == [texts, texts]
    assert made[0].answers[:2] == ["", ""]
    assert set(made[0].answers[2:4]) <= {"[Cooperate]", "[Defect]"}


def test_a_textarena_game_that_does_not_run_is_a_row_with_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(name: str, **settings: int) -> None:
        raise SyntaxError("too new")

    monkeypatch.setitem(sys.modules, "textarena", SimpleNamespace(make=make))

    row = probe._row("chess", {"steps": 1, "repeat": 1, "seconds": 1.0})

    assert (row["loop"], row["prompt"], row["error"]) == (None, None, "SyntaxError: too new")


def test_random_diggers_choose_hidden_cells_alone() -> None:
    env = SimpleNamespace(revealed=[[True, False], [True, True]])

    assert {probe._dig(env, random.Random(seed)) for seed in range(5)} == {"[0 1]"}
