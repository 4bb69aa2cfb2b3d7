"""Whole runs of the five learners of ``models/_links`` under every intervention, one after the other, in this process.

``python -m tests.flows.simulated --runs 20 --query "select ... from break_location"`` plays run after run from base
seed to base seed through the stages themselves, without Prefect, and adds up what the query says of each run. One run
is 5 learners x 2 games x 3 pathways at the scale small, some 30 s of CPU time; with ``--game snake --pathway none
--pathway history`` 14 s. At that scale trust shows a broken judge in some runs only, in all with 21 held-out episodes.
"""

import argparse
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from s3gym.models._links import BROKEN
from s3gym.resampling import refresh
from s3gym.warehouse import Warehouse
from tests.direct import measure_directly

GAMES = ("snake", "trust")
SCORES = """
    with scores as (
        select
            cells.model_id,
            cells.game,
            cells.pathway,
            cells.intervention,
            avg(episodes.final_score) filter (where episodes.checkpoint = 0) as start,
            avg(episodes.final_score) filter (where episodes.checkpoint > 0) as later
        from int_selected_cells as cells
        inner join int_cell_episodes as episodes on cells.cell_id = episodes.cell_id
        where episodes.phase = 'evaluation'
        group by all
    )

    select game, model_id, pathway, intervention, round(start, 1) as start, round(later, 1) as later
    from scores
    order by all
"""


def learner(broken: str) -> str:
    """The model with that one link broken."""
    return f"player:learner?broken={broken}"


def simulate(data: Path, seed: int, broken: Sequence[str] = BROKEN, **values: Any) -> Warehouse:
    """Measures the learners from a base seed in ``data``, and opens what there is then."""
    asked: dict[str, Any] = {
        "models": tuple(learner(name) for name in broken),
        "games": GAMES,
        "interventions": ("all",),
        "retrospective": False,  # nothing rests on it
        "scale": "small",
        "seed": seed,
    }
    measure_directly(data, **(asked | values))
    return Warehouse(data)


def answers(
    seeds: Sequence[int], query: str, is_refreshed: bool = False, **values: Any
) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of ``query`` for the run of each seed; ``is_refreshed`` where it reads a derived table."""
    for seed in seeds:
        with TemporaryDirectory(prefix="s3gym-simulated-") as folder:
            warehouse = simulate(Path(folder) / "data", seed, **values)
            if is_refreshed:
                refresh(warehouse)
            yield warehouse.sql(query).rows()


def main() -> None:
    """Prints how often each row came up, the most frequent first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--query", default=SCORES, help="by default the mean scores")
    parser.add_argument("--refresh", action="store_true", help="make the derived tables, which a verdict may rest on")
    parser.add_argument("--pathway", action="append", help="by default none, history and memory")
    parser.add_argument("--game", action="append", help="by default snake and trust")
    parser.add_argument("--evaluation-episodes", type=int, help="by default those of the scale, 7 in both games")
    parser.add_argument("--broken", action="append", choices=BROKEN, help="by default all")
    given = parser.parse_args()
    values = {"pathways": given.pathway, "games": given.game, "broken": given.broken}
    seeds = range(given.first_seed, given.first_seed + given.runs)
    counts: Counter[tuple[Any, ...]] = Counter()
    began = time.process_time()
    told: dict[str, Any] = {name: tuple(value) for name, value in values.items() if value}
    if given.evaluation_episodes:
        told["evaluation_episodes"] = given.evaluation_episodes
    for number, rows in enumerate(answers(seeds, given.query, given.refresh, **told), 1):
        counts.update(rows)
        print(
            f"run {number} of {given.runs}, {(time.process_time() - began) / number:.1f} s of CPU time a run",
            flush=True,
        )
    for row, count in sorted(counts.items(), key=lambda item: (*map(str, item[0][:-1]), -item[1])):
        print(count, *row, sep="\t")


if __name__ == "__main__":
    main()
