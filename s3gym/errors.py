"""The one base of errors that are answers to a user, not faults of the program."""


class Explained(Exception):
    """Its message names the value, what was expected and what to do; the command line shows it and exits with 2."""
