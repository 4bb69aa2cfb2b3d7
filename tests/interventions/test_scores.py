"""What stands in place of the agent's own scores."""

import random
from typing import Any

from s3gym.interventions import oracle_judge, shuffled_scores
from s3gym.records import Step

COMMON: dict[str, Any] = {
    "stage_key": "key",
    "game": "trust",
    "phase": "exploration",
    "checkpoint": 0,
    "episode_id": "e",
    "observation": "o",
    "is_terminated": False,
    "is_truncated": False,
    "history_tokens_dropped": 0,
}


def steps(*judged: tuple[float | None, float | None]) -> list[Step]:
    return [
        Step(**COMMON, step_index=index, self_score=score, verifier_reward=reward)
        for index, (score, reward) in enumerate(judged)
    ]


def test_the_oracle_gives_rewards_and_null_where_there_is_none() -> None:
    played = steps((5.0, 1.0), (None, 2.0), (7.0, None))

    for hook in (oracle_judge.INTERVENTION.scores, oracle_judge.INTERVENTION.ranking):
        assert hook is not None and hook(played, random.Random(0)) == [1.0, 2.0, None]


def test_shuffled_scores_are_the_same_ones_nulls_included_in_an_order_of_the_stage() -> None:
    played = steps(*((float(index) if index % 3 else None, None) for index in range(30)))
    own = [step.self_score for step in played]
    deal = shuffled_scores.INTERVENTION.scores
    assert deal is not None

    dealt = deal(played, random.Random(1))

    assert dealt != own and sorted(map(str, dealt)) == sorted(map(str, own))
    assert dealt == deal(played, random.Random(1)) != deal(played, random.Random(2))
    assert any(old is None and new is not None for old, new in zip(own, dealt, strict=True))
    assert shuffled_scores.INTERVENTION.ranking is None  # training deals them itself
