from tests.sql.lab import Lab, row


def test_pairs_are_counted_beside_the_published_ones(lab: Lab) -> None:
    # y_0 = 1, one segment of 3: NABA = 3 * rise / 2; memory less history: 1.5, -3, 0
    for model, (memory, history) in {"a": (2.0, 1.0), "b": (1.0, 3.0), "c": (1.0, 1.0)}.items():
        lab.add(f"m {model}", {0: [1.0], 3: [1.0 + memory]}, model_id=model, pathway="memory")
        lab.add(f"h {model}", {0: [1.0], 3: [1.0 + history]}, model_id=model, pathway="history")
    lab.add("m d", {0: [1.0], 3: [2.0]}, model_id="d", pathway="memory")
    found = row(lab.open(), "memory_vs_history_games")
    counts = ("pair_count", "memory_win_count", "history_win_count", "tie_count", "mean_naba_difference")
    assert [found[name] for name in counts] == [3, 1, 1, 1, -0.5]
    assert [found[f"published_{name}"] for name in counts] == [7, 3, 4, 0, -0.81]
    assert found["source"] == "arXiv 2608.31100, CC BY 4.0"


def test_a_game_without_pairs_or_without_a_published_contest_is_told_so(lab: Lab) -> None:
    lab.add(curve={0: [1.0], 3: [2.0]}, game="chess", pathway="memory")
    found = row(lab.open(), "memory_vs_history_games")
    assert (found["pair_count"], found["mean_naba_difference"], found["published_pair_count"]) == (0, None, None)
