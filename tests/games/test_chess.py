"""Chess: hand-worked positions, the opponent's two plies, ends of the game, and reference players."""

import random
from collections.abc import Sequence
from dataclasses import replace
from statistics import mean

import pytest
from chess import STARTING_FEN, Board

from s3gym.games._chess_search import balance, best_moves, gain
from s3gym.games.base import Move
from s3gym.games.chess import GAME, ChessConfig, ChessState
from s3gym.protocol.anchors import play_out

RELAXED, STRICT = GAME.exploration, GAME.evaluation


def duel(fen: str, config: ChessConfig = STRICT, draws: Sequence[int] = (0,) * 20) -> ChessState:
    """The start of an episode in a position of one's own; an opponent with draws of 0 takes the first of equals."""
    fen = f"{fen} 0 1" if fen.count(" ") == 3 else fen
    return ChessState(config=config, start=fen, draws=tuple(draws), fen=fen, last_move="Kg1")


TWO_KNIGHTS = "4k3/8/8/8/8/5N2/8/1N2K3 w - -"


# --- start --------------------------------------------------------------------------------------------------


def test_starts_are_level_middle_games_without_check_and_with_twenty_moves_or_more() -> None:
    colors = set()
    for seed in range(150):
        board = Board(GAME.reset(STRICT, seed).start)
        assert board.is_valid() and not board.is_check() and board.outcome() is None
        assert 10 <= board.ply() <= 20
        assert abs(balance(board, board.turn)) <= 1
        assert board.legal_moves.count() >= 20
        colors.add(board.turn)
    assert colors == {True, False}


def test_the_instance_is_the_position_and_the_opponents_draws() -> None:
    start = GAME.reset(STRICT, 5)
    assert len(start.draws) == 20
    assert GAME.instance_id(start) == GAME.instance_id(GAME.reset(RELAXED, 5))
    assert GAME.instance_id(start) != GAME.instance_id(replace(start, draws=start.draws[::-1]))


def test_an_unknown_opponent_is_refused() -> None:
    with pytest.raises(ValueError, match="opponent is 'engine', expected random or material"):
        replace(STRICT, opponent="engine")


# --- observation --------------------------------------------------------------------------------------------


def test_the_observation_shows_colours_last_move_fen_diagram_and_in_exploration_the_moves() -> None:
    text = (
        "Step 4 of 20. You play Black; Black is to move and in check.\n"
        "Last move: Re1+\n"
        "FEN: 4k3/3p1p2/8/8/8/8/8/4RK2 b - - 3 9\n"
        "8 . . . . k . . .\n"
        "7 . . . p . p . .\n"
        "6 . . . . . . . .\n"
        "5 . . . . . . . .\n"
        "4 . . . . . . . .\n"
        "3 . . . . . . . .\n"
        "2 . . . . . . . .\n"
        "1 . . . . R K . .\n"
        "  a b c d e f g h"
    )
    fen = "4k3/3p1p2/8/8/8/8/8/4RK2 b - - 3 9"
    for config, moves in ((STRICT, ""), (RELAXED, "\nLegal moves: Kd8 Kf8")):
        state = replace(duel(fen, config), step_index=3, last_move="Re1+")
        assert GAME.render(GAME.view(state)) == text + moves


def test_rules_name_the_opponent_and_the_price_of_a_mistake() -> None:
    assert "a random legal move" in GAME.rules(RELAXED) and "uses the step up" in GAME.rules(RELAXED)
    assert "best for it in material" in GAME.rules(STRICT) and "forfeits the game" in GAME.rules(STRICT)


# --- material -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fen", "expected"),
    [
        (STARTING_FEN, 0),
        ("1nr1k3/8/8/8/8/8/P7/3QK3 w - - 0 1", 2),  # 9 + 1 - 5 - 3
        ("QQQ1k3/8/8/8/8/8/8/4K3 w - - 0 1", 27),  # promoted queens are queens
        ("b3k3/8/8/8/8/8/8/4KN2 w - - 0 1", 0),
    ],
)
def test_material_is_counted_by_the_usual_values(fen: str, expected: int) -> None:
    assert (balance(Board(fen), True), balance(Board(fen), False)) == (expected, -expected)


def test_a_gain_is_the_change_of_balance_whatever_the_move() -> None:
    rng = random.Random(1)
    for _ in range(20):
        board = Board()
        while board.outcome() is None and board.ply() < 120:
            move = rng.choice([*board.legal_moves])
            player, before, expected = board.turn, balance(board, board.turn), gain(board, move)
            board.push(move)
            assert balance(board, player) - before == expected


@pytest.mark.parametrize(
    ("fen", "action", "reply", "reward"),
    [
        ("4k3/8/8/3pP3/8/8/8/4K3 w - d6", "exd6", "Kd7", 1.0),  # en passant
        ("8/P6k/8/8/8/8/8/K7 w - -", "a8=Q", "Kg6", 8.0),  # a queen for a pawn
        ("8/P6k/8/8/8/8/8/K7 w - -", "a8=R", "Kg6", 4.0),
        ("1r6/P6k/8/8/8/8/8/K7 w - -", "axb8=Q", "Kg6", 13.0),  # 5 + 9 - 1
        ("7r/P5k1/8/8/8/8/8/K7 w - -", "a8=Q", "Rxa8+", -1.0),  # 9 - 1, then the new queen is lost
        ("7k/8/8/8/8/8/1p6/R6K w - -", "Kg2", "bxa1=Q", -13.0),  # the rook, and 9 - 1 for the other side
        ("7k/8/8/4p3/3Q4/8/8/K7 w - -", "Qd1", "e4", 0.0),
        ("7k/8/8/2p1p3/3Q4/8/8/K7 w - -", "Qxc5", "e4", 1.0),
        ("k2r4/8/8/3n4/8/8/8/3Q3K w - -", "Qxd5+", "Rxd5", -6.0),  # 3 - 9
    ],
)
def test_the_reward_is_material_won_less_material_lost_over_move_and_reply(
    fen: str, action: str, reply: str, reward: float
) -> None:
    taken = GAME.take(duel(fen), action)
    assert (taken.status, taken.action) == ("ok", action)
    assert (taken.outcome.state.last_move, taken.outcome.reward) == (reply, reward)
    assert (taken.outcome.end_reason, taken.outcome.feedback) == (None, "You moved and the opponent replied.")


def test_a_state_holds_the_moves_and_the_position_after_them() -> None:
    after = GAME.step(duel("7k/8/8/8/8/8/1p6/R6K w - -"), "Kg2").state
    assert after.moves == ("h1g2", "b2a1q")
    assert after.fen == "7k/8/8/8/8/8/6K1/q7 w - - 0 2"
    assert (after.step_index, after.start) == (1, "7k/8/8/8/8/8/1p6/R6K w - - 0 1")


# --- ends ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fen", "action", "last_move", "reward", "end_reason"),
    [
        ("6k1/5ppp/8/8/8/8/8/K3R3 w - -", "Re8#", "Re8#", 10.0, "checkmate"),
        ("4r1k1/5ppp/8/8/8/8/8/K3R3 w - -", "Rxe8#", "Rxe8#", 15.0, "checkmate"),  # 5 + 10
        ("q5k1/1P3ppp/8/8/8/8/8/K7 w - -", "bxa8=Q#", "bxa8=Q#", 27.0, "checkmate"),  # 9 + 9 - 1 + 10
        ("4r1k1/8/8/8/8/8/P4PPP/6K1 w - -", "a3", "Re1#", -10.0, "checkmate"),
        ("k7/8/8/P7/8/8/1p3PPP/Q5K1 w - -", "a6", "bxa1=Q#", -27.0, "checkmate"),  # -9 - (9 - 1) - 10
        ("7k/8/5K2/8/8/8/8/6Q1 w - -", "Qg6", "Qg6", 0.0, "stalemate"),
        ("8/8/8/8/4k3/8/1p6/K7 w - -", "Kxb2", "Kxb2", 1.0, "insufficient_material"),
        ("8/P6k/8/8/8/8/8/K7 w - -", "a8=N", "a8=N", 2.0, "insufficient_material"),
        ("4k3/8/8/8/8/8/R7/4K3 w - - 99 80", "Ra3", "Ra3", 0.0, "fifty_moves"),
        ("k7/7R/8/8/8/8/8/2R2K2 w - - 98 80", "Rg7", "Kb8", 0.0, "fifty_moves"),
    ],
)
def test_the_game_ends_as_python_chess_says_and_mate_counts_ten(
    fen: str, action: str, last_move: str, reward: float, end_reason: str
) -> None:
    for config in (STRICT, replace(STRICT, unusable_ends=False, is_listed=True)):
        outcome = GAME.take(duel(fen, config), action).outcome
        assert (outcome.state.last_move, outcome.reward, outcome.end_reason) == (last_move, reward, end_reason)
        assert outcome.feedback == f"The game is over: {end_reason.replace('_', ' ')}."
    assert GAME.reward_range(replace(STRICT, unusable_ends=False)) == (-27.0, 27.0)


def test_the_third_time_the_same_position_ends_the_game() -> None:
    # Two rooks leave the black king one move each time: b8 and back to a8.
    state = duel("k7/7R/8/8/8/8/8/2R2K2 w - -")
    ends = []
    for action in ("Rg7", "Rh7", "Rg7", "Rh7"):
        outcome = GAME.take(state, action).outcome
        state, end_reason = outcome.state, outcome.end_reason
        ends.append((state.last_move, end_reason))
    assert ends == [("Kb8", None), ("Ka8", None), ("Kb8", None), ("Ka8", "threefold_repetition")]


def test_an_end_shows_whose_turn_it_would_be_and_no_moves() -> None:
    after = GAME.take(duel("6k1/5ppp/8/8/8/8/8/K3R3 w - -", RELAXED), "Re8#").outcome.state
    text = GAME.render(GAME.view(after))
    assert "You play White; Black is to move and in check." in text
    assert text.endswith("Legal moves: --")


# --- answers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("Nc9", "unparsable"),
        ("castle", "unparsable"),
        ("Nbd2 and wins", "unparsable"),
        ("Nd5", "illegal"),
        ("b1b3", "illegal"),
        ("O-O", "illegal"),
        ("0000", "illegal"),
        ("--", "illegal"),
        ("@@@@", "illegal"),
        ("Nd2", "ambiguous"),  # from b1 and from f3
    ],
)
def test_unreadable_illegal_and_ambiguous_answers_are_three_things_and_nobody_moves(text: str, status: str) -> None:
    for config, end_reason in ((RELAXED, None), (STRICT, "unusable_answer")):
        before = duel(TWO_KNIGHTS, config)
        taken = GAME.take(before, text)
        assert (taken.status, taken.action) == (status, None)
        assert taken.outcome.state == replace(before, step_index=1, end_reason=end_reason)


@pytest.mark.parametrize("text", [None, "nonsense", "Nd2", "Ke8", "END"])
def test_an_unusable_answer_costs_nothing_relaxed_and_everything_where_it_ends_the_episode(text: str | None) -> None:
    # a queen, a rook and two pawns are left: 9 + 5 + 2, and mate
    fen = "4k3/8/8/8/8/8/PP6/QR2K3 w - - 0 1"
    assert GAME.take(duel(fen, RELAXED), text).outcome.reward == 0.0
    assert GAME.take(duel(fen, STRICT), text).outcome.reward == -26.0
    assert GAME.reward_range(STRICT) == (-113.0, 27.0)  # nine queens, two each of the others: 81 + 22, and mate


@pytest.mark.parametrize(
    "text",
    [
        "b1d2",
        "B1D2",
        "Nb1d2",
        "Nb1-d2",
        "nbd2",
        "NBD2",
        " `Nbd2`. ",
        "Nbd2+",
        "(Nbd2)",
        "12. Nbd2",
        "3...Nbd2",
        "Nbd2!?",
    ],
)
def test_other_spellings_of_a_move_are_read_as_its_san(text: str) -> None:
    view = GAME.view(duel(TWO_KNIGHTS))
    assert GAME.parse("Nbd2", view)[:2] == ("ok", "Nbd2")
    assert GAME.parse(text, view)[:2] == ("repaired", "Nbd2")


def test_case_tells_a_bishop_from_a_pawn_and_is_ambiguous_when_it_does_not() -> None:
    view = GAME.view(duel("4k3/8/8/4B3/8/2n5/1P6/4K3 w - -"))
    for text, status, action in (("bxc3", "ok", "bxc3"), ("Bxc3", "ok", "Bxc3"), ("BXC3", "ambiguous", None)):
        assert GAME.parse(text, view)[:2] == (status, action)
    alone = GAME.view(duel("4k3/8/8/4B3/8/2n5/8/4K3 w - -"))
    assert GAME.parse("bxc3", alone)[:2] == ("repaired", "Bxc3")


@pytest.mark.parametrize("text", ["O-O", "o-o", "0-0", "e1g1"])
def test_castling_is_read_in_every_notation(text: str) -> None:
    parsed = GAME.parse(text, GAME.view(duel("4k3/8/8/8/8/8/8/4K2R w K -")))
    assert parsed.action == "O-O"


# --- the opponent -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fen", "expected"),
    [
        # The rook is guarded: 5 - 9 = -4. The pawn on h4 is not: 1 - 0.
        ("k2q4/8/8/3R4/2P4P/8/8/K7 b - - 0 1", "d8h4"),
        # Mate in one comes before the queen on b6.
        ("4r1k1/p4ppp/1Q6/8/8/8/5PPP/6K1 b - - 0 1", "e8e1"),
        # The knight takes a guarded pawn for 1 - 3, the pawn takes a free one.
        ("k7/8/2n5/6p1/3P3P/4P3/8/K7 b - - 0 1", "g5h4"),
        # Any piece would do on a1, where nothing takes it: 5 + 9 - 1 is the most.
        ("7k/8/8/8/8/8/1p6/RN5K b - - 0 1", "b2a1q"),
    ],
)
def test_the_opponent_looks_at_its_move_and_the_best_capture_after_it(fen: str, expected: str) -> None:
    board = Board(fen)
    assert [move.uci() for move in best_moves(board)] == [expected]
    assert board.fen() == fen


def test_the_opponents_two_plies_agree_with_looking_at_every_answer() -> None:
    rng = random.Random(4)
    for _ in range(25):
        board = Board()
        for _ in range(rng.randrange(6, 60)):
            board.push(rng.choice([*board.legal_moves]))
            if board.outcome() is not None:
                board.pop()
        values = {move.uci(): worst_balance(board, move.uci()) for move in board.legal_moves}
        best = max(values.values())
        assert {move.uci() for move in best_moves(board)} == {name for name, value in values.items() if value == best}


def worst_balance(board: Board, move: str) -> float:
    """Balance of the side to move after ``move`` and the answer that lowers it most; mate is more than any."""
    board, player = board.copy(), board.turn
    board.push_uci(move)
    if board.is_checkmate():
        return 1000.0
    lowest = balance(board, player)
    for answer in [*board.legal_moves]:
        board.push(answer)
        lowest = min(lowest, balance(board, player))
        board.pop()
    return lowest


@pytest.mark.parametrize("config", [RELAXED, STRICT])
def test_among_equal_replies_the_draw_of_the_step_decides(config: ChessConfig) -> None:
    # The king on a8 has three moves that win and lose nothing; in UCI order a7, b7, b8.
    fen = "k7/8/8/8/8/8/7P/7K w - -"
    replies = [GAME.step(duel(fen, config, (draw,)), "h3").state.last_move for draw in range(4)]
    assert replies == ["Ka7", "Kb7", "Kb8", "Ka7"]


# --- players ------------------------------------------------------------------------------------------------


def choice(player: str, fen: str, steps_left: int = 20, config: ChessConfig = STRICT) -> Move:
    state = replace(duel(fen, config), step_index=20 - steps_left)
    return GAME.players[player](GAME.view(state), random.Random(0))


def test_greedy_takes_the_most_it_can_take_safely() -> None:
    # The queen could take the guarded rook (5 - 9) or the free knight (3).
    assert choice("greedy", "k2r4/8/3r4/8/n7/8/8/K2Q4 w - -").action == "Qxa4+"
    # A pawn that takes a guarded knight: 3 - 1, better than a free pawn.
    assert choice("greedy", "k7/8/2p5/3n2p1/4P2P/8/8/K7 w - -").action == "exd5"


def test_the_expert_mates_unless_more_can_be_won_in_the_steps_left() -> None:
    # Re8# wins 10 and ends the game; Bxh4 wins the queen, with three pawns and the mate still to come.
    fen = "6k1/5ppp/8/8/7q/8/5B2/K3R3 w - -"
    assert choice("expert", fen, steps_left=1) == Move("Re8#", 10.0)
    assert choice("expert", fen).action == "Bxh4"


def test_the_expert_does_not_take_what_is_guarded_and_sees_a_fork() -> None:
    # Qxd5 loses the queen for a knight. Nc7+ forks king and rook and wins 5 on the next move.
    assert choice("expert", "r3k3/8/8/1N6/8/8/PP6/K7 w - -").action == "Nc7+"
    assert choice("expert", "k2r4/8/8/3n4/8/8/8/3Q3K w - -").action != "Qxd5+"


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (STRICT, -1.0),  # the pawn is taken
        (RELAXED, -0.05),  # one of 19 replies takes it: 12 moves of the rook, 5 of the king, 2 of the pawn
    ],
)
def test_the_experts_estimate_counts_the_replies_the_opponent_may_choose(config: ChessConfig, expected: float) -> None:
    # The white king and the pawns of the a-file cannot move.
    assert choice("expert", "1r4k1/8/3p4/8/p3P3/P7/P7/K7 w - -", config=config) == Move("e5", expected)


def test_the_expert_gains_material_against_the_evaluation_opponent_and_judges_itself_right_on_average() -> None:
    scores, errors = [], []
    for seed in range(10):
        state, total = GAME.reset(STRICT, seed), 0.0
        while state.end_reason is None and state.step_index < STRICT.horizon:
            move = GAME.players["expert"](GAME.view(state), random.Random(0))
            assert move.self_score is not None
            outcome = GAME.take(state, move.action).outcome
            errors.append(outcome.reward - move.self_score)
            state, total = outcome.state, total + outcome.reward
        scores.append(total)
    assert sum(score > 0 for score in scores) >= 8
    assert mean(scores) >= 12  # 18.1 measured, standard error 3.1 over 10
    assert abs(mean(errors)) <= 0.15  # what is left is which of equal replies is drawn
    assert mean(error == 0 for error in errors) >= 0.7


@pytest.mark.parametrize(
    ("player", "config", "low", "high"),
    [
        ("random", STRICT, -35.6, -29.6),  # -32.6, standard error 1.5 over 50
        ("random", RELAXED, -2.5, 1.5),  # -0.5, standard error 1.0
        ("greedy", STRICT, -9.6, -3.2),  # -6.4, standard error 1.6
        ("greedy", RELAXED, 23.3, 28.9),  # 26.1, standard error 1.4
    ],
)
def test_other_players_are_where_the_scale_expects_them(
    player: str, config: ChessConfig, low: float, high: float
) -> None:
    assert low <= mean(play_out(GAME, config, player, seed) for seed in range(50)) <= high


# --- a reader's eyes ----------------------------------------------------------------------------------------


def test_the_reader_names_the_same_moves_with_a_list_and_without() -> None:
    for fen in (TWO_KNIGHTS, "8/P6k/8/8/8/8/8/K7 w - -"):
        listed, bare = (GAME.reader.actions(GAME.render(GAME.view(duel(fen, config)))) for config in (RELAXED, STRICT))
        assert listed == bare and len(listed) == Board(duel(fen).fen).legal_moves.count()


def test_the_reader_names_no_move_where_there_is_none() -> None:
    mated = GAME.take(duel("6k1/5ppp/8/8/8/8/8/K3R3 w - -"), "Re8#").outcome.state
    for text in (GAME.render(GAME.view(mated)), "nothing", "FEN: nonsense"):
        assert GAME.reader.actions(text) == ["--"]
        assert GAME.reader.glance(text, "--") == 0.0


def test_a_glance_is_what_the_move_wins_at_once() -> None:
    observation = GAME.render(GAME.view(duel("k2r4/8/8/3n4/8/8/P7/3Q3K w - -")))
    assert [GAME.reader.glance(observation, name) for name in ("Qxd5+", "a4", "Qxd9", "--")] == [3.0, 0.0, 0.0, 0.0]


def test_there_is_nothing_to_learn_for_one_who_knows_the_rules() -> None:
    assert not GAME.reader.is_learnable
