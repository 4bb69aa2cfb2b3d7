"""Known answers: agents whose gain, or lack of it, is known from how they are built."""

from pathlib import Path

import pytest

from s3gym.games.trust import GAME as TRUST
from s3gym.warehouse import Warehouse
from tests.flows.conftest import run

SEEDS = (0,)
SPOILED = ("player:learner?hints=shuffled", "player:learner?hints=unscored")


@pytest.fixture(scope="module")
def controls(prefect_api: str, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Warehouse]:
    """One folder a base seed: learners, sound and spoiled; 0, 3, 6 explored, 28 fresh each."""
    warehouses = {}
    for seed in SEEDS:
        data = tmp_path_factory.mktemp("controls") / "data"
        outcome = run(
            data,
            "exploration_episodes=6",
            "evaluation_episodes=28",
            'evaluation_set="fresh"',
            "retrospective=false",
            seed=seed,
            games=["minesweeper", "snake"],
            models=["player:learner", *SPOILED],
            pathways=["none", "history"],
        )
        assert outcome.failures == []
        warehouses[seed] = Warehouse(data, materialize=True)
    return warehouses


def gain(warehouse: Warehouse, model: str, game: str) -> tuple[float, float, float]:
    """Paired gain against the own control with its 95 % interval."""
    query = f"""
        select mean_difference, difference_low, difference_high from control_gain
        where model_id = '{model}' and game = '{game}'
    """
    (row,) = warehouse.sql(query).rows()
    return row


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("game", ["minesweeper", "snake"])
def test_the_learner_beats_its_own_control(controls: dict[int, Warehouse], game: str, seed: int) -> None:
    mean, low, _ = gain(controls[seed], "player:learner", game)

    assert 0 < low < mean


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("game", ["minesweeper", "snake"])
@pytest.mark.parametrize("model", SPOILED)
def test_a_learner_with_spoiled_hints_gains_nothing(
    controls: dict[int, Warehouse], model: str, game: str, seed: int
) -> None:
    mean, low, _ = gain(controls[seed], model, game)

    assert low is None or low <= 0, (mean, low)


@pytest.mark.parametrize("seed", SEEDS)
def test_without_experience_nothing_shows(controls: dict[int, Warehouse], seed: int) -> None:
    query = """
        with parts as (
            select
                c.game, c.model_id, e.checkpoint > 0 as is_later,
                avg(e.final_score) as mean, var_samp(e.final_score) / count(*) as variance
            from int_cell_episodes as e inner join int_selected_cells as c on c.cell_id = e.cell_id
            where c.pathway = 'none'
            group by all
        )
        select
            game, model_id, sqrt(sum(variance)),
            max(mean) filter (where is_later) - max(mean) filter (where not is_later)
        from parts group by all
    """
    rows = controls[seed].sql(query).rows()

    assert len(rows) == 6
    for game, model, error, drift in rows:
        assert abs(drift) <= 3 * error, (game, model, drift, error)


def test_the_myopic_player_falls_below_its_control_in_trust(prefect_api: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    request = {"games": ["trust"], "models": ["player:myopic"], "pathways": ["none", "history"]}
    run(data, "evaluation_episodes=84", scale="smoke", **request)
    query = "select pathway, score from improvement_curve where checkpoint = 3"
    scores = dict(Warehouse(data).sql(query).rows())
    # With hints it cheats always; without it plays at random. Both are known exactly.
    cheats, _ = TRUST.exact_anchor(TRUST.evaluation, "cheater") or (None, None)
    plays_at_random, deviation = TRUST.exact_anchor(TRUST.evaluation, "random") or (None, None)

    assert cheats is not None and plays_at_random is not None and deviation is not None
    assert scores["history"] == pytest.approx(cheats) == pytest.approx(9.428571428571429)
    assert scores["none"] == pytest.approx(plays_at_random, abs=3 * deviation / 84**0.5)
    assert cheats < plays_at_random


def test_the_expert_judges_itself_exactly(smoke: Path) -> None:
    query = """
        select game, agreement, over_confidence, under_confidence, scored_count from judge_reliability
        where model_id = 'player:expert' and phase = 'evaluation' and game in ('snake', 'minesweeper')
    """
    rows = Warehouse(smoke).sql(query).rows()

    assert len(rows) == 2
    assert all(row[1:4] == (1.0, 0.0, 0.0) and row[4] > 50 for row in rows)


def test_over_and_under_confidence_are_found_where_they_were_built_in(prefect_api: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    models = ["player:expert?confidence=over", "player:expert?confidence=under"]
    run(data, scale="smoke", games=["snake"], models=models, pathways=["none"])

    query = "select model_id, agreement, over_confidence, under_confidence from judge_reliability order by model_id"
    rates = {row[0][-5:].strip("="): row[1:] for row in Warehouse(data).sql(query).rows()}

    agreement, over, under = rates["over"]
    assert under == 0 and over == pytest.approx(1 - agreement) and over > 0.5  # snake pays on few steps
    agreement, over, under = rates["under"]
    assert over == 0 and under == pytest.approx(1 - agreement) and under > 0.1


def test_random_and_expert_are_the_ends_of_the_normalised_scale(prefect_api: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    ends = {"player:random": 0.0, "player:expert": 1.0}
    games = ["minesweeper", "snake", "trust"]
    settings = {"scale": "smoke", "games": games, "models": [*ends], "pathways": ["none"]}
    run(data, "evaluation_episodes=105", 'evaluation_set="fresh"', **settings)
    query = """
        select
            c.game, c.model_id, count(*), avg((e.final_score - a.random_mean) / a.anchor_range),
            stddev_samp(e.final_score / a.anchor_range) / sqrt(count(*))
        from int_cell_episodes as e
        inner join int_selected_cells as c on c.cell_id = e.cell_id
        inner join int_anchors as a on a.config_id = c.evaluation_config_id
        group by c.game, c.model_id
    """
    rows = Warehouse(data).sql(query).rows()

    assert len(rows) == 6
    for game, model, count, normalised, error in rows:
        assert count == 210
        assert abs(normalised - ends[model]) <= 2 * error, (game, model, normalised, error)
