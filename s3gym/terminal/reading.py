"""``replay`` and ``verify``: what is stored, read again."""

import sys
from pathlib import Path

from s3gym import storage
from s3gym.terminal.board import palette_of, show
from s3gym.terminal.console import ask, console, plain, verbatim
from s3gym.verification import verify_folder
from s3gym.warehouse import Warehouse


def show_episode(episode: str, data: Path) -> None:
    """Prints a stored episode; a person at a terminal goes through it step by step."""
    warehouse = Warehouse(data)
    text = episode.replace("'", "''")
    found = warehouse.sql(
        f"select * from stg_episodes where starts_with(episode_id, '{text}') order by episode_id"
    ).to_dicts()
    matches = [row for row in found if row["episode_id"] == episode] or found
    if len(matches) != 1:
        some = ", ".join(row["episode_id"] for row in matches[:5]) or "none"
        raise storage.StorageError(
            f"{len(matches)} episodes begin with {episode!r} ({some}); give a whole episode_id, as listed by "
            '`s3gym sql "select cell_id, episode_id, final_score from int_cell_episodes"`'
        )
    row = matches[0]
    own = str(row["episode_id"]).replace("'", "''")
    steps = warehouse.sql(f"select * from stg_steps where episode_id = '{own}' order by step_index").to_dicts()
    palette = palette_of(row["game"])
    is_stepped = sys.stdin.isatty() and sys.stdout.isatty()
    verbatim(f"{row['episode_id']}  seed {row['seed']}  {row['status']}")
    for step in steps:
        console.rule(f"step {step['step_index'] + 1} of {len(steps)}")
        show(step["observation"], palette)
        for name in ("reasoning", "reply", "error_message"):
            if step[name] is not None:
                verbatim(f"\n{name}: {step[name]}")
        told = ("action", "action_status", "self_score", "verifier_reward", "feedback")
        verbatim("\n" + "   ".join(f"{name}: {plain(step[name])}" for name in told))
        if is_stepped:
            typed = ask("Enter: next step; a: all the rest; q: stop > ")
            if typed not in ("", "a"):
                return
            is_stepped = typed == ""
    console.rule("end")
    show(row["final_observation"], palette)
    verbatim(f"\n{row['end_reason']}; final score {plain(row['final_score'])}")


def verify(data: Path) -> int:
    """Replays everything stored; the exit code."""
    count = wrong = 0
    for verdict in verify_folder(data):
        count += verdict.is_replay
        wrong += bool(verdict.problems)
        for problem in verdict.problems:
            verbatim(f"{verdict.subject}: {problem}", "red")
    offending = {name: rows for name, rows in Warehouse(data, "all").checks().items() if rows}
    for name, rows in offending.items():
        console.print(f"check {name}: {rows} offending rows", style="red", highlight=False)
    console.print(f"{count} episodes replayed, {wrong} differ; {len(offending)} SQL checks failed", highlight=False)
    return 1 if wrong or offending else 0
