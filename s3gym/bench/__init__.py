"""How fast the program itself is, on this machine. Nothing here is part of an experiment."""
