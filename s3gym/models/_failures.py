"""What went wrong with a hosted call: one of ``ERROR_KINDS``, and the provider's words without any secret.

litellm has one exception class for a server's 500, an unreadable body, a refused connection and a missing
key. They are told apart by what caused it, by class *name*: providers use different HTTP libraries, none of
them ours.
"""

import math
import os
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from s3gym.models.base import ModelError

MESSAGE_LIMIT = 300
"""Characters kept of what a provider says."""
REDACTED = "[redacted]"
SECRET_NAMES = ("_KEY", "_TOKEN", "_SECRET", "PASSWORD")
"""Endings of the environment variables whose values are secrets."""
SHORTEST_SECRET = 6
"""Characters; shorter values are words such as ``none``."""

REMEDIES = {
    "authentication": "check the key in the provider's environment variable, such as OPENAI_API_KEY, and its credit",
    "bad_request": "check the model's name and its settings; the same request would fail again",
    "connection": "check base_url, the network, and that the server is up",
    "context_window": "lower history_token_limit or max_output_tokens",
    "not_found": "check the model's name and base_url",
    "rate_limit": "lower parallel, or raise the limit with the provider",
    "timeout": "raise timeout_seconds, or lower max_output_tokens",
}
"""What a user can do; the other kinds are the provider's or the model's doing."""

_KIND_OF_STATUS = {
    401: "authentication",
    402: "authentication",
    403: "authentication",
    404: "not_found",
    408: "timeout",
    429: "rate_limit",
    504: "timeout",
}
_TIMEOUTS = {"Timeout", "TimeoutError", "TimeoutException"}
_BAD_ADDRESSES = {"InvalidURL", "UnsupportedProtocol"}
_BROKEN_CONNECTIONS = {"APIConnectionError", "ClientConnectionError", "ConnectionError", "TransportError"}
_NO_CREDIT = re.compile(r"insufficient_quota|exceeded your current quota", re.I)
_MISSING_KEY = re.compile(
    r"missing (\w+ )?(credentials|api[ _]key)|api[ _]key .{0,40}(not set|not found|must be set)", re.I
)
_WRAPPING = re.compile(r"^(?:(?:litellm\.)?\w*(?:Error|Exception|Timeout)(?:: | - | Error: ))+")
_READ_LIMIT = 20_000
"""Characters looked at of what a provider says: an error may quote a whole page."""

_SECRETS = tuple(
    (re.compile(pattern, re.IGNORECASE), replacement)
    for pattern, replacement in (
        (r"(https?://)[^/\s@]+@", r"\1"),
        (r"(\bauthorization[\"']?\s*[:=]\s*[\"']?)((bearer|basic)\s+)?[^\s\"',}]+", rf"\1{REDACTED}"),
        (r"(\bbearer\s+)[\w.~+/=*-]{8,}", rf"\1{REDACTED}"),
        (r"((api[-_ ]?key|token|secret|password)[\"']?\s*[:=]\s*[\"']?)[^\s\"',;&}]{6,}", rf"\1{REDACTED}"),
        (r"([?&](key|sig|signature)=)[^&\s\"']+", rf"\1{REDACTED}"),
        (r"\b(sk|pk|rk|hf|gsk|xai|nvapi|gh[pousr])[-_][\w*-]{6,}", REDACTED),
        (r"\b(AIza|AKIA)[\w-]{12,}", REDACTED),
    )
)
"""What a credential looks like in an address, a header, a setting, or by its provider's prefix."""


def failure_of(error: Exception) -> ModelError:
    """``error``, raised by litellm or below it, as one of ours."""
    kind = _kind(error)
    words = _words(error)
    remedy = REMEDIES.get(kind)
    return ModelError(kind, f"{words}; {remedy}" if remedy else words, _retry_after(error))


def redact(text: str) -> str:
    """``text`` without what looks like a credential, and without any secret of this environment."""
    own = {value for name, value in os.environ.items() if name.upper().endswith(SECRET_NAMES)}
    for value in sorted((value for value in own if len(value) >= SHORTEST_SECRET), key=len, reverse=True):
        text = text.replace(value, REDACTED)
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def short(text: str) -> str:
    """``text`` as one line of at most ``MESSAGE_LIMIT`` characters, without anything that looks like a credential."""
    said = " ".join(redact(text[:_READ_LIMIT]).split())
    return said if len(said) <= MESSAGE_LIMIT else said[: MESSAGE_LIMIT - 3] + "..."


def _kind(error: Exception) -> str:
    outer, causes = _names(error), _causes(error)
    inner = {name for cause in causes for name in _names(cause)}
    text = str(error)
    if _NO_CREDIT.search(text):  # comes as a 429, which waiting does not mend
        return "authentication"
    if "ContextWindowExceededError" in outer:
        return "context_window"
    if "ContentPolicyViolationError" in outer or "content_policy_violation" in text:
        return "content_filter"
    if _TIMEOUTS & (outer | inner):
        return "timeout"
    answered = [cause.response.status_code for cause in causes if "HTTPStatusError" in _names(cause)]
    if answered:
        return _kind_of_status(answered[0])
    if _BAD_ADDRESSES & inner:
        return "bad_request"
    if _BROKEN_CONNECTIONS & inner:
        return "connection"
    if _MISSING_KEY.search(text):
        return "authentication"
    status = getattr(error, "status_code", None)
    if isinstance(status, int) and status >= 400 and status != 500:  # 500: litellm knows no better
        return _kind_of_status(status)
    return "malformed_reply"


def _kind_of_status(status: int) -> str:
    return _KIND_OF_STATUS.get(status) or ("server" if status >= 500 else "bad_request")


def _words(error: Exception) -> str:
    said = str(error)[:_READ_LIMIT].partition("Traceback (most recent call last)")[0]
    return short(_WRAPPING.sub("", said)) or type(error).__name__


def _retry_after(error: Exception) -> float | None:
    """Seconds that the provider asks to wait; given as seconds or as a date."""
    for link in (error, *_causes(error)):
        headers = getattr(getattr(link, "response", None), "headers", None) or {}
        value = headers.get("retry-after")
        if value is not None:
            return _seconds(value)
    return None


def _seconds(value: str) -> float | None:
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _causes(error: BaseException) -> list[Any]:
    """What led to ``error``, nearest first, without it."""
    causes: list[Any] = []
    cause = error.__cause__ or error.__context__
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    return causes


def _names(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}
