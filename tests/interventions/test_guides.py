"""The reference guides, and the length of a placebo."""

import pytest

from s3gym import registry
from s3gym.guides import guided_games, of_length, read_guide
from s3gym.interventions.placebo_memory import INTERVENTION
from s3gym.models.base import estimate_tokens
from s3gym.registry import GAMES
from s3gym.transcript import blocks


def count_words(text: str) -> int:
    return len(text.split())


def test_every_game_has_a_guide() -> None:
    assert list(guided_games()) == registry.names(GAMES)


@pytest.mark.parametrize("game", registry.names(GAMES))
def test_a_guide_is_short_prose_that_nobody_takes_for_a_transcript(game: str) -> None:
    text = read_guide(game).text

    assert 150 < count_words(text) < 400
    assert not list(blocks(text)) and "Answer:" not in text
    assert "Your own score" in text  # judging is part of playing
    played = registry.load(GAMES, game, "game").GAME
    assert played.rules(played.evaluation).startswith(text.splitlines()[0].removeprefix("Strategy guide: "))


def test_a_placebo_is_the_guide_of_the_next_game_and_after_the_last_of_the_first() -> None:
    assert INTERVENTION.guide is not None
    assert {game: INTERVENTION.guide(game).game for game in ("chess", "snake", "trust")} == {
        "chess": "latent_chess",
        "snake": "tetris",
        "trust": "chess",
    }


def test_a_text_is_repeated_whole_and_cut_at_a_word() -> None:
    text = "Go left. Then stop."

    assert of_length(text, 4, count_words) == text
    assert of_length(text, 3, count_words) == "Go left. Then"
    assert of_length(text, 6, count_words) == "Go left. Then stop.\n\nGo left."
    assert of_length(text, 0, count_words) == ""


@pytest.mark.parametrize("tokens", [7, 100, 20_000])
def test_a_placebo_is_as_long_as_asked_up_to_a_word(tokens: int) -> None:
    text = of_length(read_guide("snake").text, tokens, estimate_tokens)

    longest_word = 16  # characters, with the blank before it: at most 4 tokens of the estimate
    assert tokens - longest_word / 4 <= estimate_tokens(text) <= tokens
