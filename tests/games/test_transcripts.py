"""Each game plays as its stored transcript says, on every machine and in every process."""

import pytest

from s3gym import registry
from tests.games.transcripts import COMMAND, FOLDER, stored, transcript

GAMES = registry.names(registry.GAMES)


@pytest.mark.parametrize("name", GAMES)
def test_a_game_plays_as_its_stored_transcript_says(name: str) -> None:
    if not stored(name).exists():
        pytest.fail(f"{name} has no transcript; run `{COMMAND} {name}`, read it and keep it")

    now = transcript(registry.load(registry.GAMES, name, "game").GAME)

    meant = f"if this change of {name} is meant, raise its VERSION and run `{COMMAND} {name}`"
    assert now.splitlines() == stored(name).read_text().splitlines(), meant


def test_every_stored_transcript_belongs_to_a_game() -> None:
    left = sorted(path.stem for path in FOLDER.glob("*.txt") if path.stem not in GAMES)
    assert not left, f"no such game; run `{COMMAND}` to drop what is left of it"
