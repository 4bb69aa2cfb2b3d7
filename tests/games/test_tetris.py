"""Tetris: pieces, hand-worked drops, reference players, and what the learner can learn."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from statistics import mean

import pytest

from s3gym.games._blocks import ANGLES, PICTURES, grid, landings, pictures, shapes, soundness, turned
from s3gym.games.base import Move, Player
from s3gym.games.tetris import GAME, TetrisConfig, TetrisState

WIDE, NARROW = GAME.exploration, GAME.evaluation
Seen = dict[tuple[str, str], Counter[str]]


def position(rows: str, piece: str, config: TetrisConfig = NARROW) -> TetrisState:
    """A state whose lowest rows are drawn, such as ``#######. ##......``; the piece comes again and again."""
    board = grid(config.width, config.height)
    drawn = [*["." * config.width] * (config.height - len(rows.split())), *rows.split()]
    field = board.empty
    for bit in (r * board.stride + c for r, row in enumerate(drawn) for c, glyph in enumerate(row) if glyph == "#"):
        field |= 1 << bit
    return TetrisState(config=config, pieces=piece * (config.horizon + 1), field=field)


def text_of(state: TetrisState) -> str:
    return GAME.render(GAME.view(state))


def drawn(state: TetrisState, count: int) -> str:
    """The lowest rows, as ``position`` reads them."""
    return " ".join(line[2:].replace(" ", "") for line in text_of(state).splitlines()[-count:])


# --- pieces -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("piece", PICTURES)
def test_four_quarter_turns_are_the_identity(piece: str) -> None:
    picture = PICTURES[piece]
    assert turned(turned(turned(turned(picture)))) == picture
    assert pictures(piece)[3] == turned(turned(turned(picture)))
    assert "".join(picture).count("O") == 4


def test_a_turn_is_clockwise() -> None:
    # J is a row of three with a block above its left end; turned clockwise the block is right of the upper end.
    assert pictures("J") == (("O..", "OOO"), ("OO", "O.", "O."), ("OOO", "..O"), (".O", ".O", "OO"))
    assert pictures("T")[1] == ("O.", "OO", "O.")


def test_a_distinct_drop_on_an_empty_board_for_each_column_and_picture() -> None:
    # A box of width w fits into W - w + 1 columns. Different pictures: the bar has two (4 and 1 wide), the square
    # one (2), S and Z two (3 and 2), J, L and T four (3, 2, 3, 2). So on W columns
    #   bar (W - 3) + W = 2W - 3;  square W - 1;  S, Z (W - 2) + (W - 1) = 2W - 3;  J, L, T 2 (2W - 3) = 4W - 6.
    for width, counts in ((8, (13, 7, 13, 26)), (10, (17, 9, 17, 34))):
        bar, square, skew, corner = counts
        expected = {"I": bar, "O": square, "S": skew, "Z": skew, "J": corner, "L": corner, "T": corner}
        board = grid(width, width)
        for piece, count in expected.items():
            fields = {landing.field for s in shapes(piece, board.stride) for landing in landings(board, board.empty, s)}
            assert len(fields) == count, (piece, width)
        assert sum(expected.values()) == {8: 124, 10: 162}[width]


def naive(rows: list[str], picture: tuple[str, ...], column: int) -> tuple[list[str], int] | None:
    """The rules cell by cell: (rows, cleared), or None where the piece has no room; ``column`` from 0."""
    blocks = [(r, c + column) for r, row in enumerate(picture) for c, glyph in enumerate(row) if glyph == "O"]

    def is_free(top: int) -> bool:
        return all(top + r < len(rows) and rows[top + r][c] == "." for r, c in blocks)

    if not is_free(0):
        return None
    top = 0
    while is_free(top + 1):
        top += 1
    after = [[*row] for row in rows]
    for r, c in blocks:
        after[top + r][c] = "#"
    kept = ["".join(row) for row in after if "." in row]
    cleared = len(rows) - len(kept)
    return ["." * len(rows[0])] * cleared + kept, cleared


@pytest.mark.parametrize("config", [NARROW, WIDE, replace(NARROW, width=4, height=7)])
def test_drops_on_random_boards_are_those_of_the_rules_cell_by_cell(config: TetrisConfig) -> None:
    rng, ended, cleared = random.Random(1), 0, Counter[int]()
    for _ in range(2_000):
        filled = rng.choice((0.5, 0.9))
        bare = rng.randrange(config.height)
        rows = [
            "".join("#" if row >= bare and rng.random() < filled else "." for _ in range(config.width))
            for row in range(config.height)
        ]
        piece, angle = rng.choice([*PICTURES]), rng.choice(ANGLES)
        picture = pictures(piece)[angle // 90]
        column = rng.randrange(config.width - len(picture[0]) + 1)
        expected = naive(rows, picture, column)

        outcome = GAME.step(position(" ".join(rows), piece, config), f"{column + 1} {angle}")

        if expected is None:
            assert (outcome.end_reason, outcome.reward) == ("no_room", 0.0)
            ended += 1
        else:
            assert (drawn(outcome.state, config.height).split(), outcome.reward) == expected
            cleared[expected[1]] += 1
    assert ended > 100 and cleared[0] > 100 and cleared[1] > 10  # each kind has been looked at


# --- drops --------------------------------------------------------------------------------------------------


def test_a_piece_falls_until_something_stops_it_and_does_not_slide() -> None:
    # Column 3 is the highest under the flat T (columns 2 to 4), so it rests on that block; the gaps stay.
    outcome = GAME.step(position("..#.....", "T"), "2 0")
    assert drawn(outcome.state, 3) == "..#..... .###.... ..#....."
    assert (outcome.reward, outcome.feedback, outcome.end_reason) == (0.0, "The piece has landed.", None)
    assert outcome.state.placed == outcome.state.step_index == 1


def test_a_full_row_vanishes_and_gives_one() -> None:
    # The bar on end fills the one gap of the lowest row; its upper three blocks come down with what was above.
    outcome = GAME.step(position(".#...... .#######", "I"), "1 90")
    assert (outcome.reward, outcome.feedback) == (1.0, "The piece has landed; full rows are gone.")
    assert drawn(outcome.state, 4) == "........ #....... #....... ##......"


def test_rows_between_others_vanish_and_only_what_is_above_moves_down() -> None:
    # The bar fills column 1 of rows 4 to 7. Rows 5 and 7 are full; row 6 moves down by one and row 4 by two.
    outcome = GAME.step(position("..#..... .####### .###.### .#######", "I"), "1 90")
    assert (outcome.reward, drawn(outcome.state, 3)) == (2.0, "........ #.#..... ####.###")


def test_a_standing_bar_clears_four_rows_at_most() -> None:
    outcome = GAME.step(position("####### ".replace(" ", ". ") * 4, "I"), "8 270")
    assert (outcome.reward, outcome.state.field) == (4.0, grid(8, 8).empty)
    assert GAME.reward_range(NARROW) == (0.0, 4.0)


def test_a_piece_that_overlaps_where_it_appears_ends_the_game_though_another_column_has_room() -> None:
    state = position("#....... " * 7, "O")  # column 1 is filled up to row 1, the square needs rows 0 and 1
    taken = GAME.take(state, "1 0")
    assert (taken.status, taken.outcome.reward, taken.outcome.end_reason) == ("ok", 0.0, "no_room")
    assert taken.outcome.feedback == "There was no room where the piece appeared: the game is over."
    assert taken.outcome.state == replace(state, step_index=1, end_reason="no_room")
    assert GAME.take(state, "2 0").outcome.end_reason is None


def test_a_piece_with_just_room_in_the_top_rows_stays_there() -> None:
    outcome = GAME.step(position("#....... " * 6, "O"), "1 0")
    assert (outcome.end_reason, drawn(outcome.state, 8)[:18]) == (None, "##...... ##...... ")


def test_only_the_cells_of_a_piece_need_room_not_its_whole_box() -> None:
    # S lies in rows 0 and 1: its upper row takes columns 2 and 3, its lower row columns 1 and 2. The block in row 0
    # of column 1 is in the box but not in its way, so it falls to the floor past it.
    state = position("#....... " + "........ " * 7, "S")
    outcome = GAME.step(state, "1 0")
    assert (outcome.end_reason, drawn(outcome.state, 2)) == (None, ".##..... ##......")


# --- answers ------------------------------------------------------------------------------------------------


def test_column_7_is_out_of_range_for_a_piece_three_wide_on_eight_columns() -> None:
    # Columns 7, 8 and 9 would be needed, and there is no 9; turned by 90 it is two wide and fits.
    state = position("", "T")
    taken = GAME.take(state, "7 0")
    assert (taken.status, taken.action) == ("invalid", None)
    assert taken.outcome.state == replace(state, step_index=1)  # the step is gone, the piece stays
    assert GAME.take(state, "6 0").status == GAME.take(state, "7 90").status == "ok"


@pytest.mark.parametrize("config", [NARROW, WIDE])
@pytest.mark.parametrize("piece", PICTURES)
def test_exactly_the_columns_that_hold_the_turned_box_are_in_range(piece: str, config: TetrisConfig) -> None:
    view = GAME.view(position("", piece, config))
    for angle, picture in zip(ANGLES, pictures(piece), strict=True):
        columns = [column for column in range(-3, 100) if GAME.parse(f"{column} {angle}", view).status == "ok"]
        assert columns == [*range(1, config.width - len(picture[0]) + 2)]


@pytest.mark.parametrize("angle", [-90, 1, 45, 360, 450])
def test_no_angle_is_rounded(angle: int) -> None:
    parsed = GAME.parse(f"1 {angle}", GAME.view(position("", "T")))
    assert (parsed.status, parsed.action) == ("invalid", None)
    assert "0, 90, 180 and 270" in parsed.feedback


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("5 90", "ok"),
        ("5, 90", "repaired"),
        ("5,90", "repaired"),
        ("(5 90)", "repaired"),
        ("[5, 90]", "repaired"),
        ("5.0 90", "repaired"),
        ("5 90 deg", "repaired"),
        ("5 90 degrees.", "repaired"),
        ("5 90°", "repaired"),
        ("5 90'", "repaired"),
        ("column 5, angle 90", "repaired"),
        ("Column: 5 Angle: 90", "repaired"),
        ("5", "unparsable"),
        ("5 90 0", "unparsable"),
        ("5 90 as it fits", "unparsable"),
        ("5.5 90", "unparsable"),
        ("1,000", "unparsable"),  # one number
        ("1e9 0", "unparsable"),
        ("５ 90", "unparsable"),
    ],
)
def test_the_grammar_takes_a_column_and_an_angle(text: str, status: str) -> None:
    parsed = GAME.parse(text, GAME.view(position("", "T")))
    assert (parsed.status, parsed.action) == (status, None if status == "unparsable" else "5 90")


def test_sizes_in_which_a_bar_does_not_fit_or_headers_do_not_align_say_what_to_change() -> None:
    with pytest.raises(ValueError, match="width is 3, expected 4 to 10: set another width"):
        replace(NARROW, width=3)
    with pytest.raises(ValueError, match="height is 11, expected 4 to 10"):
        replace(NARROW, height=11)


# --- the sequence and the observation -----------------------------------------------------------------------


def test_the_pieces_are_drawn_ahead_and_an_unusable_answer_keeps_the_current_one() -> None:
    state = GAME.reset(NARROW, 3)
    assert len(state.pieces) == 64 + 1
    assert GAME.view(state).piece == state.pieces[0]
    kept = GAME.take(state, "9 0").outcome.state
    assert (kept.step_index, GAME.view(kept).piece) == (1, state.pieces[0])
    assert GAME.view(GAME.step(state, "1 0").state).piece == state.pieces[1]


def test_pieces_are_uniform() -> None:
    # 65 x 400 = 26,000 pieces, 3,714 of each; the standard deviation is sqrt(26000 x 1/7 x 6/7) = 56.
    counts = Counter("".join(GAME.reset(NARROW, seed).pieces for seed in range(400)))
    assert set(counts) == set("IOSZJLT")
    assert all(abs(count - 26_000 / 7) < 4 * 56 for count in counts.values())


def test_the_observation_shows_step_piece_columns_and_numbered_board() -> None:
    state = replace(position("#....... ##.#####", "L"), step_index=6)
    assert text_of(state) == (
        "Step 7 of 64. Piece L, turned clockwise:\n"
        "angle 0       angle 90      angle 180     angle 270\n"
        "columns 1-6   columns 1-7   columns 1-6   columns 1-7\n"
        ". . O         O .           O O O         O O\n"
        "O O O         O .           O . .         . O\n"
        "              O O                         . O\n"
        "Board:\n"
        "  1 2 3 4 5 6 7 8\n"
        "0 . . . . . . . .\n"
        "1 . . . . . . . .\n"
        "2 . . . . . . . .\n"
        "3 . . . . . . . .\n"
        "4 . . . . . . . .\n"
        "5 . . . . . . . .\n"
        "6 # . . . . . . .\n"
        "7 # # . # # # # #"
    )


def test_rules_are_true_for_the_configuration() -> None:
    assert "8 rows and 8 columns" in GAME.rules(NARROW) and "10 rows and 10 columns" in GAME.rules(WIDE)
    assert "uses the step up" in GAME.rules(NARROW)
    assert "ends the episode" in GAME.rules(replace(NARROW, unusable_ends=True))


# --- players ------------------------------------------------------------------------------------------------


def play(player: Player, config: TetrisConfig, seed: int) -> tuple[float, int, bool]:
    """(final score, steps, whether every self-score was the verifier's reward)."""
    state, rng, rewards, is_exact = GAME.reset(config, seed), random.Random(seed), [], True
    for _ in range(config.horizon):
        move = player(GAME.view(state), rng)
        outcome = GAME.take(state, move.action).outcome
        state = outcome.state
        rewards.append(outcome.reward)
        is_exact = is_exact and move.self_score == outcome.reward
        if outcome.end_reason:
            break
    return GAME.final_score(rewards), len(rewards), is_exact


def test_the_expert_reaches_its_anchor_and_judges_itself_exactly() -> None:
    results = [play(GAME.players["expert"], NARROW, seed) for seed in range(20)]
    assert mean(score for score, _, _ in results) >= 26.0  # 28.4 measured, standard deviation 4.8
    assert all(is_exact for _, _, is_exact in results)


def test_a_search_over_one_piece_is_good_but_not_the_best() -> None:
    scores = [play(GAME.players["one_piece"], NARROW, seed)[0] for seed in range(120)]
    assert 24.2 < mean(scores) < 27.7  # 25.9 measured, standard deviation 6.6, so 0.6 over 120


@pytest.mark.parametrize(
    ("config", "rows", "pieces"),  # measured over 20,000: 0.019 rows of 6.86 pieces, and 0.006 of 9.9
    [(NARROW, (0.013, 0.025), (6.8, 6.9)), (WIDE, (0.002, 0.010), (9.8, 10.0))],
)
def test_random_play_is_where_the_scale_expects_it(
    config: TetrisConfig, rows: tuple[float, float], pieces: tuple[float, float]
) -> None:
    results = [play(GAME.players["random"], config, seed) for seed in range(4_000)]
    assert rows[0] <= mean(score for score, _, _ in results) <= rows[1]
    assert pieces[0] <= mean(steps for _, steps, _ in results) <= pieces[1]


def test_the_expert_takes_the_rows_that_are_left_on_the_last_step() -> None:
    # Standing in column 8 the bar clears one row and leaves three blocks on top of each other.
    state = replace(position("#######.", "I"), step_index=63)
    assert GAME.players["expert"](GAME.view(state), random.Random(0)) == Move("8 90", 1.0)


def test_players_answer_even_where_nothing_fits() -> None:
    view = GAME.view(position("#.#.#.#. " * 8, "O"))
    for name, player in GAME.players.items():
        action = player(view, random.Random(0)).action
        assert GAME.parse(action, view).status == "ok", name
        assert GAME.step(position("#.#.#.#. " * 8, "O"), action).end_reason == "no_room"


@pytest.mark.parametrize(
    ("rows", "cost"),
    [
        ("####....", 4),  # four cells of height; rows and columns change as often as on an empty board
        # The same in a tower with room on both sides: two more changes in each of its rows, 8, and as many bumps, 2.
        ("...#.... " * 4, 4 + 8 + 2),
        # Eight cells of height, one hole (4), and two changes more in its row and in its column.
        ("####.... .###....", 8 + 4 + 2 + 2),
        # Four cells of height, two changes more in both rows (4), as many bumps (1), a gap two deep: 1 + 2 halves.
        ("#.#..... #.#.....", 4 + 4 + 1 + 1.5),
    ],
)
def test_a_stack_is_charged_for_each_weakness(rows: str, cost: float) -> None:
    board = grid(8, 8)
    assert soundness(board, board.empty) - soundness(board, position(rows, "T").field) == cost


# --- the learner's eyes -------------------------------------------------------------------------------------


def facts_of(before: TetrisState, action: str) -> list[tuple[str, str, str]]:
    outcome = GAME.take(before, action).outcome
    return [*GAME.reader.facts(text_of(before), action, f"{outcome.feedback}\n{text_of(outcome.state)}")]


def test_a_drop_shows_which_cells_come_from_the_highest_and_the_named_column() -> None:
    # T on end: its left column has three blocks, the middle one has a block to the right.
    assert facts_of(position("##......", "T"), "3 90") == [("piece T", "angle 90", "0,0 1,0 1,1 2,0")]
    assert facts_of(position("##......", "T"), "1 90") == [("piece T", "angle 90", "0,0 1,0 1,1 2,0")]


@pytest.mark.parametrize(
    ("rows", "piece", "action"),
    [
        (".#######", "I", "1 90"),  # a row vanishes
        ("#....... " * 8, "I", "1 90"),  # no room
        ("", "T", "7 0"),  # out of range
    ],
)
def test_what_shows_no_four_new_cells_shows_nothing(rows: str, piece: str, action: str) -> None:
    assert facts_of(position(rows, piece), action) == []


def test_states_that_do_not_follow_from_each_other_show_nothing() -> None:
    before = position("", "O")
    after = GAME.step(before, "3 0").state

    def facts(old: TetrisState, action: str, new: TetrisState) -> list[tuple[str, str, str]]:
        return [*GAME.reader.facts(text_of(old), action, text_of(new))]

    assert facts(before, "3 0", after) == [("piece O", "angle 0", "0,0 0,1 1,0 1,1")]
    assert facts(after, "3 0", before) == []  # backwards
    assert facts(before, "3 0", replace(after, step_index=2)) == []  # a step is missing
    assert facts(before, "2 0", after) == []  # another column was named
    assert facts(position("#.......", "O"), "3 0", after) == []  # a cell is gone
    assert facts(before, "3 0", position("..##.... ..##....", "O", WIDE)) == []  # another board


def known(piece: str, *angles: int) -> dict[tuple[str, str], dict[str, int]]:
    """Facts that name the true cells of a piece."""
    return {
        (f"piece {piece}", f"angle {angle}"): {" ".join(cells_of(pictures(piece)[angle // 90])): 1} for angle in angles
    }


def cells_of(picture: tuple[str, ...]) -> Iterator[str]:
    return (f"{r},{c}" for r, row in enumerate(picture) for c, glyph in enumerate(row) if glyph == "O")


def test_known_cells_are_dropped_where_the_stack_stays_sound_and_full_rows_are_foreseen() -> None:
    observation = text_of(position("####.### ####.### ####.### ####.###", "I"))
    facts = known("I", *ANGLES)
    assert GAME.reader.choose(observation, facts, random.Random(0)) == Move("5 90", 4.0)


def test_cells_are_taken_from_facts_not_from_the_picture() -> None:
    # As if the flat bar stood on end: it is thought to fill the gap in column 5.
    observation = text_of(position("####.### ####.### ####.### ####.###", "I"))
    facts = {("piece I", "angle 0"): {"0,0 1,0 2,0 3,0": 2, "0,0 0,1 0,2 0,3": 1}}
    assert GAME.reader.choose(observation, facts, random.Random(0)) == Move("5 0", 4.0)


def test_unknown_angles_are_tried_while_the_stack_is_low() -> None:
    low, high = (text_of(position("##...... " * count, "T")) for count in (2, 3))
    facts = known("T", 0, 180)

    def angles(observation: str) -> set[str]:
        return {GAME.reader.choose(observation, facts, random.Random(seed)).action.split()[1] for seed in range(40)}

    assert angles(low) == {"90", "270"}
    assert angles(high) <= {"0", "180"}


def test_nothing_is_claimed_before_the_first_piece_was_seen_to_land() -> None:
    observation = text_of(position("", "T"))
    assert GAME.reader.choose(observation, {}, random.Random(0)).self_score is None
    assert GAME.reader.choose(observation, known("O", 0), random.Random(0)).self_score == 0.0


def test_every_placement_between_the_walls_can_be_named() -> None:
    # The S piece is 3 wide at 0 and 180 and 2 wide at 90 and 270: 2 x 6 + 2 x 7 = 26 on eight columns.
    names = GAME.reader.actions(text_of(position("", "S")))
    assert len(names) == len(set(names)) == 26
    assert {"1 0", "6 0", "7 90", "6 180", "7 270"} <= set(names)


def test_a_glance_counts_rows_whose_gaps_are_near_the_column() -> None:
    observation = text_of(position("###..### #.#####. #####.##", "T"))
    # From column 4: columns 4 to 7, the gaps of the first and the last row. From column 2: columns 2 to 5, the first.
    assert [GAME.reader.glance(observation, action) for action in ("4 0", "2 0", "8 90", "END")] == [2.0, 1.0, 0.0, 0.0]


def test_facts_from_nine_exploration_episodes_make_a_learner_that_evaluates_far_better() -> None:
    def episode(config: TetrisConfig, seed: int, facts: Seen) -> float:
        state, rng, rewards = GAME.reset(config, seed), random.Random(seed), []
        for _ in range(config.horizon):
            move = GAME.reader.choose(text_of(state), facts, rng)
            outcome = GAME.take(state, move.action).outcome
            for situation, name, result in facts_of(state, move.action):
                facts.setdefault((situation, name), Counter())[result] += 1
            state = outcome.state
            rewards.append(outcome.reward)
            if outcome.end_reason:
                break
        return GAME.final_score(rewards)

    def evaluate(facts: Seen) -> float:
        copies = ({key: Counter(seen) for key, seen in facts.items()} for _ in range(20))
        return mean(episode(NARROW, seed, copy) for seed, copy in enumerate(copies, start=1_000))

    experience: Seen = {}
    for seed in range(9):
        episode(WIDE, seed, experience)
    assert evaluate({}) < 2.0
    assert evaluate(experience) > 12.0
