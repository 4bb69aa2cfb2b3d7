from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from s3gym.models._failures import MESSAGE_LIMIT, _seconds, failure_of, redact, short

SECRET = "Zq7-abc.DEF_123"


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {SECRET}",
        f"{{'Authorization': 'Bearer {SECRET}'}}",
        f"authorization=Basic {SECRET}",
        f"sent Bearer {SECRET} to the server",
        f"https://host/v1?api-key={SECRET}&x=1",
        f"https://host/v1?key={SECRET}",
        f"https://user:{SECRET}@host/v1",
        f'"api_key": "{SECRET}"',
        f"x-api-key: {SECRET}",
        f"Incorrect API key provided: sk-{SECRET}",
    ],
)
def test_what_looks_like_a_credential_is_redacted(text: str) -> None:
    assert "abc" not in redact(text)


@pytest.mark.parametrize(
    "key", ["sk-proj-abc123", "hf_abcDEF123", "AIzaSyabcdefghij12345", "gsk_abc123", "sk-ab****yz"]
)
def test_a_key_is_known_by_its_prefix(key: str) -> None:
    assert redact(f"refused: {key} is not valid") == "refused: [redacted] is not valid"


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "HF_TOKEN", "AWS_SECRET", "DB_PASSWORD", "my_key"])
def test_secrets_of_the_environment_are_redacted_whatever_they_look_like(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "plain words")
    assert redact("it said: plain words, twice") == "it said: [redacted], twice"


def test_ordinary_words_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_API_KEY", "none")  # what people set for servers that want no key
    said = "This model's maximum context length is 8192 tokens; none left at http://localhost:8000/v1/chat"
    assert redact(said) == said


def test_a_message_is_short_and_keeps_no_traceback() -> None:
    error = failure_of(
        ValueError("litellm.APIError: no\n  reply " + "x" * 10_000 + "\nTraceback (most recent call last)")
    )
    assert error.message.startswith("no reply xxx")
    assert len(error.message) == MESSAGE_LIMIT


def test_a_long_text_is_one_short_line_and_its_credentials_are_gone_before_it_is_cut() -> None:
    said = short("a\n" * 145 + f"Bearer {SECRET}")  # the cut, after 297 characters, would leave half the credential
    assert said == "a " * 145 + "Bearer ..."  # 290 + 7 + 3 = 300
    assert short("one\n line") == "one line"


@pytest.mark.parametrize("text", ["Error code: 429 - insufficient_quota", "You exceeded your current quota, please"])
def test_an_account_without_credit_is_no_matter_of_waiting(text: str) -> None:
    error = failure_of(ValueError(text))
    assert error.kind == "authentication" and "its credit" in error.message


def test_retry_after_is_seconds_or_a_date() -> None:
    assert _seconds("2.5") == 2.5
    assert _seconds("-1") == 0.0
    in_a_minute = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    assert _seconds(in_a_minute) == pytest.approx(60, abs=2)
    assert _seconds("soon") is None
    assert _seconds("nan") is None
