"""Each learner with a broken link gains by the intervention that stands in for it, and by no earlier one."""

from pathlib import Path

from s3gym.models._links import BROKEN
from tests.flows.simulated import learner, simulate

INTERVENTIONS = ("oracle_judge", "shuffled_scores", "expert_exploration", "reference_memory", "relaxed_evaluation")
GAINS = """
    with scores as (
        select
            cells.model_id,
            cells.pathway,
            cells.intervention,
            avg(episodes.final_score) as score
        from int_selected_cells as cells
        inner join int_cell_episodes as episodes on cells.cell_id = episodes.cell_id
        where episodes.phase = 'evaluation' and episodes.checkpoint > 0
        group by all
    )

    select
        treated.model_id,
        if(treated.intervention = 'main', 'own', treated.intervention) as change,
        treated.score - reference.score as gain
    from scores as treated
    inner join scores as reference
        on
            treated.model_id = reference.model_id
            -- the strict control for the own gain, the relaxed one for the relaxed, else the cell itself
            and reference.pathway = if(treated.intervention in ('main', 'relaxed_evaluation'), 'none', 'history')
            and reference.intervention = if(
                treated.intervention = 'relaxed_evaluation', treated.intervention, 'main'
            )
    where treated.pathway = 'history'
"""


def test_in_snake_the_right_intervention_helps(tmp_path: Path) -> None:
    warehouse = simulate(
        tmp_path / "data",
        seed=0,
        games=("snake",),
        pathways=("none", "history"),
        interventions=INTERVENTIONS,
        exploration_episodes=3,
    )

    gains = {(model, change): gain for model, change, gain in warehouse.sql(GAINS).rows()}
    helps = {
        broken: {change for (model, change), gain in gains.items() if model == learner(broken) and gain > 2}
        for broken in BROKEN
    }
    hurts = {model for (model, change), gain in gains.items() if change == "shuffled_scores" and gain < -2}
    # more than two apples a game; who explores in another's place scores what it does as well, and a guide serves all
    assert helps == {
        "nothing": {"own", "reference_memory", "relaxed_evaluation"},
        "testing": {"expert_exploration", "reference_memory"},
        "judging": {"oracle_judge", "expert_exploration", "reference_memory"},
        "consolidation": {"reference_memory"},
        "execution": {"relaxed_evaluation"},
    }
    assert hurts == {learner("nothing")}
