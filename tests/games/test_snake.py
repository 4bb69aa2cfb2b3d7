"""Snake: hand-worked positions, reference players, and what the learner can learn."""

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from statistics import mean

import pytest

from s3gym.games.base import Move, Player
from s3gym.games.snake import GAME, Arena, SnakeConfig, SnakeState

RELAXED, STRICT = GAME.exploration, GAME.evaluation
Seen = dict[tuple[str, str], Counter[str]]


def position(picture: str, body: str, heading: str = "UP", config: SnakeConfig = RELAXED) -> SnakeState:
    """A state from a drawing of ground and apples, and a body such as ``43 53``; apples come row by row."""
    rows = picture.split()
    size = len(rows)
    glyphs = "".join(rows)
    ground = glyphs.replace("A", ".")
    free = tuple(cell for cell, glyph in enumerate(ground) if glyph == ".")
    apples = tuple(cell for cell, glyph in enumerate(glyphs) if glyph == "A")
    cells = tuple(int(name[0]) * size + int(name[1]) for name in body.split())
    config = replace(config, size=size, apple_count=len(apples))
    return SnakeState(config=config, arena=Arena(ground, free), heading=heading, body=cells, apples=apples, cursor=0)


OPEN = "######## #......# #......# #......# #......# #......# #......# ########"
ONE_APPLE = "######## #......# #......# #..A...# #......# #..X...# #......# ########"
SMALL = "###### #....# #....# #....# #....# ######"


# --- start --------------------------------------------------------------------------------------------------


def test_the_start_is_a_single_head_at_4_3_that_looks_up() -> None:
    state = GAME.reset(STRICT, 11)
    assert (state.body, state.heading, state.step_index) == ((4 * 8 + 3,), "UP", 0)


def test_layouts_are_connected_without_blind_alleys_and_spare_the_first_step() -> None:
    for seed in range(200):
        state = GAME.reset(STRICT, seed)
        ground = state.arena.ground
        free = {cell for cell, glyph in enumerate(ground) if glyph == "."}
        assert ground.count("X") == 3
        assert {35, 27} <= free  # the head at (4,3) and the cell ahead of it, (3,3)
        near = {cell: {cell + 1, cell - 1, cell + 8, cell - 8} & free for cell in free}
        assert min(map(len, near.values())) >= 2
        reached, edge = {35}, {35}
        while edge:
            edge = set().union(*(near[cell] for cell in edge)) - reached
            reached |= edge
        assert reached == free
        assert len(set(state.apples)) == 3 and set(state.apples) < free - {35}
        assert sorted(state.arena.order) == sorted(free)


def test_both_phases_draw_the_same_instance_from_the_same_seed() -> None:
    assert GAME.instance_id(GAME.reset(RELAXED, 5)) == GAME.instance_id(GAME.reset(STRICT, 5))


def test_impossible_configurations_say_what_to_change() -> None:
    with pytest.raises(ValueError, match="size is 5, expected 6 to 10"):
        SnakeConfig(collision_ends=True, size=5)
    with pytest.raises(ValueError, match="obstacle_count is 10, expected at most 9 on size 8"):
        replace(STRICT, obstacle_count=10)


@pytest.mark.parametrize("size", range(6, 11))
def test_every_seed_has_a_board_however_many_obstacles_are_allowed(size: int) -> None:
    config = replace(STRICT, size=size, obstacle_count=(size - 2) ** 2 // 4)
    for seed in range(30):
        assert GAME.reset(config, seed).arena.ground.count("X") == config.obstacle_count


# --- observation --------------------------------------------------------------------------------------------


def test_the_observation_shows_step_heading_numbered_board_and_body() -> None:
    state = replace(position(ONE_APPLE, "43 44 54"), step_index=6, heading="LEFT")
    assert GAME.render(GAME.view(state)) == (
        "Step 7 of 64. Heading: LEFT.\n"
        "  0 1 2 3 4 5 6 7\n"
        "0 # # # # # # # #\n"
        "1 # . . . . . . #\n"
        "2 # . . . . . . #\n"
        "3 # . . A . . . #\n"
        "4 # . . H S . . #\n"
        "5 # . . X T . . #\n"
        "6 # . . . . . . #\n"
        "7 # # # # # # # #\n"
        "Body, head to tail: (4,3) (4,4) (5,4)"
    )


def test_rules_are_true_for_the_configuration() -> None:
    assert "moves nothing and uses the step up" in GAME.rules(RELAXED)
    assert "ends the episode" in GAME.rules(STRICT)
    assert "8 x 8" in GAME.rules(STRICT) and "6 x 6" in GAME.rules(replace(STRICT, size=6))


# --- movement -----------------------------------------------------------------------------------------------


def test_eating_keeps_the_tail_in_place_and_pays_one() -> None:
    outcome = GAME.step(position(ONE_APPLE, "43 44 54"), "UP")
    assert outcome.state.body == (27, 35, 36, 44)  # (3,3) (4,3) (4,4) (5,4)
    assert (outcome.reward, outcome.feedback, outcome.end_reason) == (1.0, "You ate an apple.", None)


def test_moving_on_takes_the_tail_along() -> None:
    outcome = GAME.step(position(ONE_APPLE, "43 44 54"), "LEFT")
    assert outcome.state.body == (34, 35, 36)
    assert (outcome.reward, outcome.feedback, outcome.state.heading) == (0.0, "You moved.", "LEFT")


@pytest.mark.parametrize("config", [RELAXED, STRICT])
def test_the_cell_the_tail_is_leaving_is_free(config: SnakeConfig) -> None:
    # H S      the head goes down into T, which moves up to the right meanwhile
    # T S
    taken = GAME.take(position(OPEN, "33 34 44 43", "LEFT", config), "DOWN")
    assert taken.outcome.state.body == (4 * 8 + 3, 3 * 8 + 3, 3 * 8 + 4, 4 * 8 + 4)
    assert (taken.status, taken.outcome.end_reason) == ("ok", None)


@pytest.mark.parametrize(
    ("body", "heading", "action"),
    [
        ("13", "UP", "UP"),  # the wall
        ("54", "UP", "LEFT"),  # the obstacle at (5,3)
        ("33 34 44 43 42", "LEFT", "DOWN"),  # the body at (4,3), not the tail
    ],
)
def test_a_collision_is_a_usable_action_that_moves_nothing_or_ends_the_episode(
    body: str, heading: str, action: str
) -> None:
    for config, end_reason in ((RELAXED, None), (STRICT, "collision")):
        before = position(ONE_APPLE.replace("A", "."), body, heading, config)
        taken = GAME.take(before, action)
        assert (taken.status, taken.action) == ("ok", action)
        assert taken.outcome.state == replace(before, step_index=1, end_reason=end_reason)
        assert taken.outcome[1:] == (0.0, "Blocked: nothing moved.")


def test_a_single_cell_may_turn_straight_back() -> None:
    taken = GAME.take(position(OPEN, "43", "UP", STRICT), "DOWN")
    assert (taken.status, taken.outcome.state.body, taken.outcome.end_reason) == ("ok", (5 * 8 + 3,), None)


@pytest.mark.parametrize("body", ["43 53", "43 53 63"])
def test_a_longer_snake_turning_straight_back_is_illegal(body: str) -> None:
    for config, end_reason in ((RELAXED, None), (STRICT, "unusable_answer")):
        before = position(OPEN, body, "UP", config)
        taken = GAME.take(before, "DOWN")
        assert (taken.status, taken.action) == ("illegal", None)
        assert taken.outcome.state == replace(before, step_index=1, end_reason=end_reason)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("LEFT", "ok"),
        ("left", "repaired"),
        (" `Left`. ", "repaired"),
        ("<LEFT>", "repaired"),
        ("L", "unparsable"),
        ("go LEFT", "unparsable"),
        ("RıGHT", "unparsable"),  # its capitals would be ASCII
    ],
)
def test_the_grammar_takes_one_word_in_any_case(text: str, status: str) -> None:
    view = GAME.view(position(OPEN, "43"))
    parsed = GAME.parse(text, view)
    assert parsed.status == status
    assert parsed.action == (None if status == "unparsable" else "LEFT")


# --- apples -------------------------------------------------------------------------------------------------


def test_a_new_apple_takes_the_next_free_cell_of_the_order() -> None:
    # The order is row by row: (1,1) to (1,4) are body, (1,5) holds the other apple, so (1,6) is next.
    board = ONE_APPLE.replace("#......#", "#....A.#", 1)
    outcome = GAME.step(position(board, "34 24 14 13 12 11", "DOWN"), "LEFT")
    assert outcome.reward == 1.0
    assert outcome.state.apples == (1 * 8 + 5, 1 * 8 + 6)
    assert outcome.state.cursor == 6  # six cells of the order are used up


def test_there_are_fewer_apples_where_no_more_fit() -> None:
    # 14 of 16 cells are body and two hold apples; after eating one, only the other cell is free, and taken.
    state = position(SMALL.replace("#....#", "#AA..#", 1), "13 14 24 34 44 43 33 23 22 32 42 41 31 21", "LEFT")
    after = GAME.step(state, "LEFT").state
    assert (len(after.body), after.apples) == (15, (1 * 6 + 1,))


def test_a_full_board_does_not_hang_and_following_the_tail_goes_on() -> None:
    # The 16 cells of a 6 x 6 board as one ring; the last of them holds the last apple, next to the head.
    ring = "12 13 14 24 34 44 43 33 23 22 32 42 41 31 21"
    outcome = GAME.step(position(SMALL.replace("#....#", "#A...#", 1), ring, "LEFT", STRICT), "LEFT")
    assert (outcome.reward, len(outcome.state.body), outcome.state.apples) == (1.0, 16, ())
    for action in ("DOWN", "DOWN", "DOWN"):
        outcome = GAME.step(outcome.state, action)
        assert (outcome.reward, outcome.end_reason, outcome.state.apples) == (0.0, None, ())


# --- players ------------------------------------------------------------------------------------------------


def play(player: Player, config: SnakeConfig, seed: int) -> tuple[float, bool]:
    """(final score, whether every self-score was the verifier's reward)."""
    state, rng, rewards, is_exact = GAME.reset(config, seed), random.Random(seed), [], True
    for _ in range(config.horizon):
        move = player(GAME.view(state), rng)
        outcome = GAME.take(state, move.action).outcome
        state, reward, end_reason = outcome.state, outcome.reward, outcome.end_reason
        rewards.append(reward)
        is_exact = is_exact and move.self_score == reward
        if end_reason:
            break
    return GAME.final_score(rewards), is_exact


def test_the_expert_reaches_its_anchor_and_judges_itself_exactly() -> None:
    results = [play(GAME.players["expert"], STRICT, seed) for seed in range(100)]
    assert mean(score for score, _ in results) >= 19.0  # 19.9 measured, standard error 0.3
    assert all(is_exact for _, is_exact in results)


@pytest.mark.parametrize(
    ("player", "config", "low", "high"),
    [
        ("random", STRICT, 0.33, 0.47),  # 0.40, standard error 0.015 over 1,600
        ("random", RELAXED, 2.5, 2.9),  # 2.7, standard error 0.05
        ("careful", STRICT, 4.3, 4.9),  # 4.6, standard error 0.07
    ],
)
def test_random_lines_are_where_the_scale_expects_them(
    player: str, config: SnakeConfig, low: float, high: float
) -> None:
    assert low <= mean(play(GAME.players[player], config, seed)[0] for seed in range(1_600)) <= high


def test_the_expert_leaves_an_apple_that_is_a_trap_for_one_further_away() -> None:
    # Beside the obstacle, (1,1) touches one free cell only, (2,1), where the head is now: no way back out.
    trap = "######## #AX....# #....A.# #......# #......# #......# #......# ########"
    for picture, expected in ((trap, Move("RIGHT", 0.0)), (trap.replace("X", "."), Move("UP", 1.0))):
        view = GAME.view(position(picture, "21 31 41", "UP", STRICT))
        assert GAME.players["expert"](view, random.Random(0)) == expected


# --- the learner's eyes -------------------------------------------------------------------------------------


def text_of(state: SnakeState) -> str:
    return GAME.render(GAME.view(state))


def learn(facts: Seen, before: SnakeState, action: str) -> SnakeState:
    outcome = GAME.take(before, action).outcome
    after: SnakeState = outcome.state
    for situation, name, result in GAME.reader.facts(text_of(before), action, f"{outcome.feedback}\n{text_of(after)}"):
        facts.setdefault((situation, name), Counter())[result] += 1
    return after


def test_a_move_shows_the_displacement_and_that_the_glyph_lets_pass() -> None:
    facts: Seen = {}
    learn(facts, position(ONE_APPLE, "43"), "UP")
    assert facts == {("move", "UP"): Counter({"-1,0": 1}), ("enter A", "*"): Counter({"free": 1})}


def test_a_blocked_head_shows_what_stood_around_it() -> None:
    for config in (RELAXED, STRICT):
        facts: Seen = {}
        learn(facts, position(ONE_APPLE, "43 33", "DOWN", config), "DOWN")
        assert facts == {("beside N=neck S=X W=. E=.", "DOWN"): Counter({"stayed": 1})}


@pytest.mark.parametrize(
    "after",
    [
        position(ONE_APPLE, "63"),  # two cells away
        position(OPEN, "33"),  # other obstacles
        position(ONE_APPLE, "33 34 44"),  # another body
    ],
)
def test_boards_that_do_not_follow_from_each_other_show_nothing(after: SnakeState) -> None:
    assert list(GAME.reader.facts(text_of(position(ONE_APPLE, "43")), "UP", text_of(after))) == []


def test_the_reader_takes_words_by_their_seen_effect_not_by_their_meaning() -> None:
    facts = {("move", "RIGHT"): {"-1,0": 2}, ("move", "UP"): {"1,0": 2, "0,1": 1}}
    move = GAME.reader.choose(text_of(position(ONE_APPLE, "43")), facts, random.Random(0))
    assert move == Move("RIGHT", 1.0)  # the apple is above the head


def test_without_facts_every_word_is_tried_and_nothing_is_claimed() -> None:
    observation = text_of(position(ONE_APPLE, "43"))
    moves = {GAME.reader.choose(observation, {}, random.Random(seed)) for seed in range(40)}
    assert moves == {Move(action, None) for action in ("LEFT", "RIGHT", "UP", "DOWN")}


def test_what_has_stopped_the_head_is_walked_around() -> None:
    steps = {
        ("move", "UP"): {"-1,0": 1},
        ("move", "DOWN"): {"1,0": 1},
        ("move", "LEFT"): {"0,-1": 1},
        ("move", "RIGHT"): {"0,1": 1},
    }
    below = text_of(position(ONE_APPLE, "63"))  # head, obstacle, empty, apple in one column
    stopped = {("beside N=. S=. W=X E=.", "LEFT"): {"stayed": 1}}

    def choices(facts: Mapping[tuple[str, str], Mapping[str, int]]) -> set[str]:
        return {GAME.reader.choose(below, facts, random.Random(seed)).action for seed in range(20)}

    assert choices(steps) == {"UP"}
    assert choices(steps | stopped) == {"LEFT", "RIGHT"}


def test_a_glance_is_an_apple_where_the_word_points() -> None:
    observation = text_of(position(ONE_APPLE, "43"))
    assert [GAME.reader.glance(observation, word) for word in ("UP", "DOWN", "END")] == [1.0, 0.0, 0.0]


def test_facts_from_six_exploration_episodes_make_a_learner_that_evaluates_far_better() -> None:
    def episode(config: SnakeConfig, seed: int, facts: Seen) -> float:
        state, rng, rewards = GAME.reset(config, seed), random.Random(seed), []
        for _ in range(config.horizon):
            action = GAME.reader.choose(text_of(state), facts, rng).action
            outcome = GAME.take(state, action).outcome
            reward, end_reason = outcome.reward, outcome.end_reason
            state = learn(facts, state, action)
            rewards.append(reward)
            if end_reason:
                break
        return GAME.final_score(rewards)

    def evaluate(facts: Seen) -> float:
        copies = ({key: Counter(seen) for key, seen in facts.items()} for _ in range(60))
        return mean(episode(STRICT, seed, copy) for seed, copy in enumerate(copies, start=1_000))

    experience: Seen = {}
    for seed in range(6):
        episode(RELAXED, seed, experience)
    # Measured over 300 episodes: 1.6 without and 14.8 with experience, standard errors 0.15 and 0.3.
    assert evaluate({}) < 4.0
    assert evaluate(experience) > 12.0
