"""Prefect flows: order, caching. No rule, prompt, metric or HTML lives here."""

import os

for _name, _value in {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",  # else its shutdown prints tracebacks
    "PREFECT_LOGGING_LEVEL": "CRITICAL",  # failures are told once, in our own summary
}.items():
    os.environ.setdefault(_name, _value)
