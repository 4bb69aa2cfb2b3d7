"""Learners with one broken link: what each reads, and what stands in for what it lacks."""

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from s3gym.games.chess import GAME as CHESS
from s3gym.games.snake import GAME as SNAKE
from s3gym.games.trust import GAME as TRUST
from s3gym.guides import read_guide
from s3gym.models._links import BROKEN
from s3gym.models.base import Decoding, Request
from s3gym.models.scripted import load
from s3gym.protocol.prompts import step_messages
from s3gym.protocol.rollout import scene_of
from s3gym.registry import UnknownName
from s3gym.transcript import AGENT, answer_line, blocks, read_answer_line
from tests.models.test_scripted import action, remembered, said, transcript
from tests.programmed import blind

GUIDE = read_guide("snake").text


def learner(broken: str) -> Any:
    return load(f"player:learner?broken={broken}")


def explored(game: Any, model: Any = None, seeds: range = range(3)) -> str:
    """Transcripts of some exploration episodes, by default of a healthy learner that knows nothing."""
    return "".join(transcript(game, game.exploration, model or learner("nothing"), seed) for seed in seeds)


def request(game: Any, experience: str | None, config: Any = None, seed: int = 5, instance: int = 3) -> Request:
    """The first step of an episode, by default a strict one."""
    config = config or game.evaluation
    view = game.view(game.reset(config, instance))
    return Request(
        messages=step_messages(experience, [], game.rules(config), game.render(view)),
        purpose="act",
        seed=seed,
        decoding=Decoding(),
        scene=scene_of(game, config, view),
    )


def chosen(broken: str, game: Any, experience: str | None, config: Any = None, instance: int = 3) -> set[str]:
    """What a learner does at the first step, over many seeds."""
    model = learner(broken)
    return {action(model, request(game, experience, config, seed, instance))[0] for seed in range(20)}


def answers(text: str) -> list[tuple[str, float | None]]:
    """(action, score) of every step of a transcript."""
    return [done for mark, body in blocks(text) if mark == AGENT and (done := read_answer_line(body))]


def rescored(text: str, scores: Sequence[float | None]) -> str:
    """A transcript with other scores, in order."""
    lines = iter(answer_line(done, score) for (done, _), score in zip(answers(text), scores, strict=True))
    return re.sub(f"(?m)^{AGENT}.*$", lambda _: f"{AGENT}{next(lines)}", text)


def shuffled(text: str) -> str:
    """A transcript with its own scores dealt anew."""
    scores = [score for _, score in answers(text)]
    random.Random(1).shuffle(scores)
    return rescored(text, scores)


EXPERIENCE = explored(SNAKE)
# the nearest apples of instance 3 lie below to the left and below to the right, two steps away
TAUGHT = {"LEFT", "RIGHT", "DOWN"}
WORDS = {"LEFT", "RIGHT", "UP", "DOWN"}


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("game", [SNAKE, TRUST], ids=lambda game: game.id)
def test_without_a_guide_a_learner_looks_at_its_prompt_and_at_nothing_else(game: Any, broken: str) -> None:
    model, experience = learner(broken), explored(game)
    for content in (None, experience, remembered(model, game, experience)):
        seen = request(game, content)

        assert said(model, replace(seen, scene=blind(seen.scene))) == said(model, seen)


@pytest.mark.parametrize("broken", BROKEN)
def test_a_memory_says_the_same_as_the_history_it_is_made_of(broken: str) -> None:
    memory = remembered(learner(broken), SNAKE, EXPERIENCE)

    assert chosen(broken, SNAKE, memory) == chosen(broken, SNAKE, EXPERIENCE)
    assert remembered(learner(broken), SNAKE, memory) == memory or broken == "consolidation"


def test_the_healthy_learner_goes_by_what_it_saw_where_its_scores_bear_it_out() -> None:
    assert chosen("nothing", SNAKE, None) == WORDS
    assert chosen("nothing", SNAKE, EXPERIENCE) == TAUGHT
    assert chosen("nothing", SNAKE, shuffled(EXPERIENCE)) == WORDS
    assert remembered(learner("nothing"), SNAKE, shuffled(EXPERIENCE)).startswith("Nothing to retain: no score")


def test_a_few_steps_bear_out_nothing() -> None:
    # two matches of ten rounds; three are enough
    assert chosen("nothing", TRUST, explored(TRUST, seeds=range(2))) == {"collaborate", "cheat"}
    assert remembered(learner("nothing"), TRUST, explored(TRUST, seeds=range(2))).count("\n") == 0
    assert remembered(learner("nothing"), TRUST, explored(TRUST)).count("\n") > 10


def test_scores_that_are_all_alike_bear_out_nothing() -> None:
    assert chosen("nothing", SNAKE, rescored(EXPERIENCE, [0.5] * len(answers(EXPERIENCE)))) == WORDS


def test_who_tests_nothing_new_repeats_one_action_and_learns_from_others() -> None:
    own = explored(SNAKE, learner("testing"))
    assert {done for done, _ in answers(own)} == {"LEFT"}
    assert chosen("testing", SNAKE, None) == chosen("testing", SNAKE, own) == {"LEFT"}

    # the nearest apple of instance 7 is right above the head
    shown = explored(SNAKE, load("player:expert"))
    assert chosen("testing", SNAKE, shown, instance=7) == {"UP"}
    assert chosen("testing", SNAKE, own, instance=7) == {"LEFT"}


def test_who_cannot_judge_scores_at_random_and_acts_on_better_scores() -> None:
    model = learner("judging")
    scores = {action(model, request(TRUST, None, seed=seed))[1] for seed in range(50)}
    assert len(scores) > 40 and all(score is not None and -1 <= score <= 3 for score in scores)

    own = explored(SNAKE, model)
    assert chosen("judging", SNAKE, own) == chosen("judging", SNAKE, shuffled(own)) == WORDS
    assert chosen("judging", SNAKE, EXPERIENCE) == TAUGHT


def test_who_forgets_keeps_a_guide_alone() -> None:
    assert remembered(learner("consolidation"), SNAKE, EXPERIENCE) == "Nothing to retain."
    assert chosen("consolidation", SNAKE, EXPERIENCE) == WORDS
    assert len(chosen("consolidation", SNAKE, GUIDE)) == 1


def test_who_does_not_act_on_it_does_so_where_slips_are_forgiven() -> None:
    for content in (EXPERIENCE, GUIDE):
        assert chosen("execution", SNAKE, content) == WORDS
        assert chosen("execution", SNAKE, content, SNAKE.exploration) < WORDS
    # the rules of trust are the same in both
    assert TRUST.rules(TRUST.exploration) == TRUST.rules(TRUST.evaluation)
    assert chosen("execution", TRUST, explored(TRUST), TRUST.exploration) == {"collaborate", "cheat"}
    assert remembered(learner("execution"), SNAKE, EXPERIENCE) == remembered(learner("nothing"), SNAKE, EXPERIENCE)


@pytest.mark.parametrize("broken", ["nothing", "testing", "judging", "consolidation"])
def test_a_guide_is_followed_as_the_expert_plays(broken: str) -> None:
    expert = action(load("player:expert"), request(SNAKE, None))[0]

    assert chosen(broken, SNAKE, GUIDE) == {expert}


def test_another_games_guide_is_no_guide() -> None:
    assert chosen("nothing", SNAKE, read_guide("tetris").text) == WORDS
    assert chosen("nothing", TRUST, GUIDE) == {"collaborate", "cheat"}


def test_its_own_score_is_what_the_rules_let_expect() -> None:
    for content in (None, EXPERIENCE, GUIDE):
        seen = request(SNAKE, content)
        done, score = action(learner("nothing"), seen)
        assert score == SNAKE.reader.expect(seen.messages[-1]["content"], done)


def test_where_there_is_nothing_to_learn_with_it_says_so() -> None:
    assert "nothing to learn this game with" in remembered(learner("nothing"), CHESS, "")


def test_which_link_is_broken_is_part_of_the_identity_and_only_the_learner_has_links() -> None:
    assert learner("judging").identity() == {
        "player": "learner",
        "options": {"broken": "judging"},
        "version": 1,
        "links": 1,
    }
    with pytest.raises(UnknownName, match="unknown player that can be broken 'expert'. Valid: learner"):
        load("player:expert?broken=testing")
    with pytest.raises(UnknownName, match="Did you mean judging"):
        load("player:learner?broken=juding")
