"""The one base of errors that are answers to a user, not faults of the program."""


class Explained(Exception):
    """Its message names the value, what was expected and what to do; the command line shows it and exits with 2."""


class MissingPackage(Explained):
    """An optional package is not installed; the message has the line that installs it. What needs it is left out."""
