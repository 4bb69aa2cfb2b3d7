"""Scripted players: some see the public view, the learner and the myopic player see their prompt alone."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from s3gym import registry
from s3gym.games.snake import GAME as SNAKE
from s3gym.games.trust import GAME as TRUST
from s3gym.games.trust import OPPONENTS
from s3gym.models.base import Decoding, Request, Scene
from s3gym.models.scripted import PlayerModel, load, names_for
from s3gym.pathways.memory import memory_messages
from s3gym.protocol.asking import Asker
from s3gym.protocol.prompts import judgment_messages, step_messages
from s3gym.protocol.rollout import past_episode, play, scene_of
from s3gym.registry import UnknownName
from s3gym.transcript import read_answer_line
from tests.programmed import Programmed, blind, part

GAMES = [registry.load("s3gym.games", name, "game").GAME for name in registry.names("s3gym.games")]
LEARNABLE = [game for game in GAMES if game.reader.is_learnable]
SEED = 3


def history(game: Any, seed: int = SEED) -> str:
    """The transcript of one exploration episode of the learner."""
    return transcript(game, game.exploration, load("player:learner"), seed)


def trust_history(*answers: str) -> str:
    """The transcript of a match against pink, who always collaborates."""
    return transcript(TRUST, TRUST.evaluation, Programmed(*answers), OPPONENTS.index("pink"))


def transcript(game: Any, config: Any, model: Any, seed: int) -> str:
    episode, steps = asyncio.run(play(game, config, Asker(model), part(seed=seed)))
    return "".join(past_episode(episode, steps).segments())


def step_request(game: Any, experience: str | None, seed: int = 5, scene: Scene | None = None) -> Request:
    """The first step of a held-out episode."""
    view = game.view(game.reset(game.evaluation, SEED))
    return Request(
        messages=step_messages(experience, [], game.rules(game.evaluation), game.render(view)),
        purpose="act",
        seed=seed,
        decoding=Decoding(),
        scene=scene or scene_of(game, game.evaluation, view),
    )


def said(model: PlayerModel, request: Request) -> str:
    return asyncio.run(model.complete(request)).text


def action(model: PlayerModel, request: Request) -> tuple[str, float | None]:
    read = read_answer_line(said(model, request))
    assert read is not None
    return read


def remembered(model: PlayerModel, game: Any, content: str) -> str:
    scene = scene_of(game, game.exploration)
    request = Request(
        messages=memory_messages(game.rules(game.exploration), content),
        purpose="remember",
        seed=5,
        decoding=Decoding(),
        scene=scene,
    )
    return said(model, request)


def judged(model: PlayerModel, game: Any, text: str) -> str:
    request = Request(
        messages=judgment_messages(game.rules(game.exploration), text, game.success_score),
        purpose="judge",
        seed=5,
        decoding=Decoding(),
        scene=scene_of(game, game.exploration),
    )
    return said(model, request)


# --- what a player looks at ---------------------------------------------------------------------------------


@pytest.mark.parametrize("player", ["learner", "myopic"])
@pytest.mark.parametrize("game", GAMES, ids=lambda game: game.id)
def test_readers_look_at_their_prompt_and_at_nothing_else(game: Any, player: str) -> None:
    model, experience = load(f"player:{player}"), history(game)
    for content in (None, experience, remembered(model, game, experience)):
        seen = step_request(game, content)

        assert said(model, replace(seen, scene=blind(seen.scene))) == said(model, seen)


def test_other_players_look_at_the_view_and_not_at_the_prompt() -> None:
    seen = step_request(SNAKE, None)
    blank = replace(seen, messages=({"role": "user", "content": ""},))

    for player in SNAKE.players:
        assert said(load(f"player:{player}"), blank) == said(load(f"player:{player}"), seen)


@pytest.mark.parametrize("player", ["learner", "myopic", "random", "expert"])
@pytest.mark.parametrize("game", GAMES, ids=lambda game: game.id)
def test_an_answer_is_a_function_of_request_and_seed(game: Any, player: str) -> None:
    experience = history(game)
    answers = [
        [said(load(f"player:{player}"), step_request(game, experience, seed)) for seed in range(8)] for _ in range(2)
    ]

    assert answers[0] == answers[1]


def test_another_seed_may_draw_another_answer() -> None:
    drawn = {said(load("player:random"), step_request(SNAKE, None, seed)) for seed in range(20)}

    assert len(drawn) == 4


# --- the learner --------------------------------------------------------------------------------------------


def test_without_experience_the_learner_knows_no_reward() -> None:
    assert action(load("player:learner"), step_request(SNAKE, None))[1] is None
    assert action(load("player:learner"), step_request(TRUST, None))[1] is None


def test_the_learner_plans_with_what_it_saw_and_scored() -> None:
    # ten rounds against one who always collaborates: cheating pays 3 each time, so far as it can know
    experience = trust_history("Answer: cheat, Score: 3")

    assert action(load("player:learner"), step_request(TRUST, experience)) == ("cheat", 3.0)


def test_the_learner_also_learns_within_the_episode() -> None:
    _, steps = asyncio.run(play(SNAKE, SNAKE.exploration, Asker(load("player:learner")), part()))

    assert steps[0].self_score is None
    assert all(step.self_score is not None for step in steps[-20:])


@pytest.mark.parametrize("game", LEARNABLE, ids=lambda game: game.id)
def test_a_memory_text_reads_back_to_the_same_facts(game: Any) -> None:
    model, experience = load("player:learner"), history(game)
    memory = remembered(model, game, experience)

    assert memory.startswith("Seen (situation | action | outcome | times):\n- ")
    assert remembered(model, game, memory) == memory
    for seed in range(10):
        by_memory, by_history = (said(model, step_request(game, content, seed)) for content in (memory, experience))
        assert by_memory == by_history


def test_memory_and_new_episodes_add_up() -> None:
    model, first, second = load("player:learner"), history(SNAKE, seed=3), history(SNAKE, seed=4)
    recursive = remembered(model, SNAKE, f"{remembered(model, SNAKE, first)}\n\n{second}")

    assert recursive == remembered(model, SNAKE, first + second)


def test_steps_without_a_self_score_are_no_hints() -> None:
    scored, unscored = trust_history("Answer: cheat, Score: 3"), trust_history("Answer: cheat, Score: none")
    model = load("player:learner")

    assert remembered(model, TRUST, unscored).splitlines() == ["Seen (situation | action | outcome | times):"]
    # against pink: each round after the whole record before it; the state after the last is no next step
    records = [f"after {' '.join(['cheat/collaborate'] * count)}" for count in range(1, 9)]
    assert remembered(model, TRUST, scored).splitlines()[1:] == [
        f"- {record} | cheat | collaborate | 1" for record in (*records, "first round")
    ]


@pytest.mark.parametrize("player", ["learner", "myopic"])
@pytest.mark.parametrize("game", GAMES, ids=lambda game: game.id)
def test_unscored_hints_are_the_same_as_none(game: Any, player: str) -> None:
    model, experience = load(f"player:{player}?hints=unscored"), history(game)

    for seed in range(10):
        unscored, without = (said(model, step_request(game, content, seed)) for content in (experience, None))
        assert unscored == without
    assert remembered(load("player:learner?hints=unscored"), game, experience).count("\n") == 0


def test_where_there_is_nothing_to_learn_with_the_learner_says_so_and_acts_at_random() -> None:
    (game,) = [game for game in GAMES if game not in LEARNABLE]
    model, experience = load("player:learner"), history(game)

    assert game.id == "chess"
    assert remembered(model, game, experience) == "Nothing to retain: there is nothing to learn this game with."
    for seed in range(5):
        with_history, without = (said(model, step_request(game, content, seed)) for content in (experience, None))
        assert with_history == without and with_history.endswith("Score: none")


@pytest.mark.parametrize("game", LEARNABLE, ids=lambda game: game.id)
def test_shuffled_hints_leave_hardly_a_fact(game: Any) -> None:
    experience = "".join(history(game, seed=seed) for seed in range(3))

    def count(spec: str) -> int:
        lines = remembered(load(spec), game, experience).splitlines()[1:]
        return sum(int(line.rsplit(" | ", 1)[1]) for line in lines)

    intact, shuffled = count("player:learner"), count("player:learner?hints=shuffled")
    assert intact >= 24  # trust: three matches of ten rounds, without the unscored first and the last
    assert shuffled <= intact / 50


# --- the myopic player --------------------------------------------------------------------------------------


def test_the_myopic_player_repeats_the_action_with_the_highest_self_score() -> None:
    experience = trust_history(
        "Answer: collaborate, Score: 2", "Answer: cheat, Score: 2.5", "Answer: collaborate, Score: 1"
    )
    model = load("player:myopic")

    assert action(model, step_request(TRUST, experience)) == ("cheat", 2.5)
    memory = remembered(model, TRUST, experience)
    assert memory == "- best action | cheat | self-score 2.5"
    assert action(model, step_request(TRUST, memory)) == ("cheat", 2.5)


def test_of_equal_self_scores_the_earliest_counts() -> None:
    experience = trust_history("Answer: collaborate, Score: 2", "Answer: cheat, Score: 2")

    assert action(load("player:myopic"), step_request(TRUST, experience)) == ("collaborate", 2.0)


def test_without_experience_the_myopic_player_draws_and_guesses() -> None:
    drawn = {action(load("player:myopic"), step_request(TRUST, None, seed)) for seed in range(20)}

    # against a fair coin: collaborating pays (2 - 1) / 2, cheating (3 + 0) / 2
    assert drawn == {("collaborate", 0.5), ("cheat", 1.5)}


def test_nothing_worth_repeating_is_said_so() -> None:
    assert remembered(load("player:myopic"), TRUST, "") == "Nothing to retain."
    assert remembered(load("player:expert"), TRUST, history(TRUST)) == "Nothing to retain."


# --- looking back -------------------------------------------------------------------------------------------


def test_a_judgment_is_the_sum_of_the_players_own_scores() -> None:
    low = trust_history("Answer: cheat, Score: 1")  # ten times 1
    high = trust_history("Answer: cheat, Score: 1.5")  # ten times 1.5 is just the success score of 15

    assert judged(load("player:learner"), TRUST, low).splitlines()[:2] == ["Final score: 10", "Success: 0"]
    assert judged(load("player:learner"), TRUST, high).splitlines()[:2] == ["Final score: 15", "Success: 1"]


def test_who_scored_nothing_judges_nothing() -> None:
    unscored = trust_history("Answer: cheat, Score: none")

    assert judged(load("player:random"), TRUST, unscored) == "Final score: unknown\nSuccess: unknown"


# --- options ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "game", "score"),
    [
        ("over", SNAKE, 1.0),
        ("over", TRUST, 3.0),  # the best there is in a round
        ("under", SNAKE, 0.0),  # never positive: the lowest there is, or 0
        ("under", TRUST, -1.0),
    ],
)
def test_confidence_replaces_every_self_score_and_no_action(option: str, game: Any, score: float) -> None:
    for player in ("expert", "random", "learner", "myopic"):
        request = step_request(game, history(game))
        told = action(load(f"player:{player}?confidence={option}"), request)
        assert told == (action(load(f"player:{player}"), request)[0], score)


def test_options_and_version_are_part_of_the_identity() -> None:
    plain, spoiled = load("player:learner"), load("player:learner?confidence=over&hints=shuffled")

    assert plain.identity() == {"player": "learner", "options": {}, "version": 1}
    assert spoiled.identity()["options"] == {"confidence": "over", "hints": "shuffled"}
    assert spoiled.model_id == "player:learner?confidence=over&hints=shuffled"


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("player:expert?confidnce=over", "unknown player option 'confidnce'. Did you mean confidence"),
        (
            "player:expert?confidence=oevr",
            "unknown value of player option 'confidence' 'oevr'. Did you mean over",
        ),
        ("player:expert?confidence", "unknown value of player option 'confidence' ''"),
        ("player:learner?hints=none", "unknown value of player option 'hints' 'none'"),
    ],
)
def test_an_unknown_option_is_told_with_its_nearest(spec: str, told: str) -> None:
    with pytest.raises(UnknownName, match=told):
        load(spec)


def test_every_game_is_played_by_its_own_players_and_the_two_readers() -> None:
    assert names_for(SNAKE.players) == ["careful", "expert", "learner", "myopic", "random"]


def test_tokens_are_the_stated_estimate() -> None:
    model = load("player:random")

    assert [model.count_tokens(text) for text in ("", "a", "abcd", "abcde")] == [0, 1, 1, 2]
