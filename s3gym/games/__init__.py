"""Games: one file each; a module's name is the game's id."""
