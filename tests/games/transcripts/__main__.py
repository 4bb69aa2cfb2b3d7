"""Rewrites the stored transcripts: of the games named, or of all, and then drops those of games that are gone."""

import sys

from s3gym import registry
from tests.games.transcripts import FOLDER, rewrite

names = registry.names(registry.GAMES)
for name in sys.argv[1:] or names:
    print(rewrite(name))
for path in FOLDER.glob("*.txt"):
    if path.stem not in names:
        path.unlink()
