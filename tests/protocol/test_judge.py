"""The view back on an episode: four lines, nulls where there is nothing, any text in linear time."""

import asyncio
import time

import pytest

from s3gym.games.trust import GAME as TRUST
from s3gym.models.base import Decoding, ModelError
from s3gym.protocol.asking import Asker
from s3gym.protocol.judge import TEXT_LIMIT, judge, parse_judgment
from s3gym.records import CallFacts, Judgment
from s3gym.transcript import PastEpisode, PastStep
from tests.programmed import Programmed

PAST = PastEpisode("e1", (PastStep("Round 1.", "Answer: cheat, Score: 3"),), "Feedback: it collaborated.\nRound 2.")
REPLY = "Final score: 12.5\nSuccess: 0.8\nRetain: cheat once\nAvoid: cheating twice"
NOTHING = {"expected_final_score": None, "success_belief": None, "retain": None, "avoid": None}


def judged(model: Programmed) -> Judgment:
    return asyncio.run(
        judge(
            TRUST,
            TRUST.exploration,
            Asker(model),
            PAST,
            stage_key="key",
            checkpoint=3,
            seed=5,
            decoding=Decoding(),
        )
    )


def test_four_lines_are_four_fields() -> None:
    assert parse_judgment(REPLY) == {
        "expected_final_score": 12.5,
        "success_belief": 0.8,
        "retain": "cheat once",
        "avoid": "cheating twice",
    }


@pytest.mark.parametrize(
    "reply",
    [
        "**Final score:** 12.5\n**Success:** 0.8\n**Retain:** cheat once\n**Avoid:** cheating twice",
        "**Final score**: 12.5\n- Success: `0.8`\n> retain: cheat once\n### AVOID: cheating twice",
        "Thinking ...\n\n  final score : 12.5 points\n\tSuccess: 0.80\nRetain: cheat once\r\n"
        "Avoid: cheating twice\n\nDone.",
        "Final score: 3\nSuccess: 0.1\nOn second thought:\n" + REPLY,
    ],
)
def test_markdown_and_prose_around_the_lines_do_no_harm_and_the_last_counts(reply: str) -> None:
    assert parse_judgment(reply) == parse_judgment(REPLY)


@pytest.mark.parametrize("belief", ["1.2", "-0.1", "80%", "likely", "nan", "inf", "1e999", ""])
def test_a_belief_that_is_no_probability_is_null(belief: str) -> None:
    assert parse_judgment(f"Success: {belief}")["success_belief"] is None


@pytest.mark.parametrize(("text", "belief"), [("0", 0.0), ("1", 1.0), ("1e-3", 0.001), ("0.5 or so", 0.5)])
def test_the_ends_of_the_range_are_beliefs(text: str, belief: float) -> None:
    assert parse_judgment(f"Success: {text}")["success_belief"] == belief


@pytest.mark.parametrize("score", ["unknown", "nan", "about 5", "", "9" * 400])
def test_a_score_that_is_no_finite_number_is_null(score: str) -> None:
    assert parse_judgment(f"Final score: {score}")["expected_final_score"] is None


def test_a_score_may_be_negative() -> None:
    assert parse_judgment("Final score: -3")["expected_final_score"] == -3.0


@pytest.mark.parametrize("reply", ["", "I do not know.", "The final score: 5", "Success 0.5", "Retain:\nAvoid:   \n"])
def test_a_reply_without_the_lines_is_all_null(reply: str) -> None:
    assert parse_judgment(reply) == NOTHING


def test_long_advice_is_cut() -> None:
    assert parse_judgment(f"Retain: {'x' * 10_000}")["retain"] == "x" * TEXT_LIMIT


@pytest.mark.parametrize(
    "junk",
    [
        "*" * 1_000_000,
        "- " * 500_000,
        "success" * 150_000,
        "success:" * 125_000,
        "\n" * 1_000_000,
        "9" * 1_000_000,
    ]
    + ["final score:" + "*" * 1_000_000, "success" + " " * 1_000_000 + "x", "final score: " + "9" * 1_000_000]
    + ["final score: 1." + "0" * 1_000_000 + "e"],
    ids=range(10),
)
def test_a_megabyte_of_anything_is_read_at_once(junk: str) -> None:
    started = time.perf_counter()
    parse_judgment(junk)

    assert time.perf_counter() - started < 2  # linear takes some hundredths; a quadratic pattern some minutes


def test_a_judgment_is_one_call_on_rules_and_transcript() -> None:
    model = Programmed(REPLY, facts=CallFacts(prompt_tokens=9))
    row = judged(model)

    (request,) = model.requests
    assert (request.purpose, request.seed, request.scene.view) == ("judge", 5, None)
    assert TRUST.rules(TRUST.exploration) in request.messages[0]["content"]
    assert "".join(PAST.segments()).strip() in request.messages[0]["content"]
    assert (row.stage_key, row.game, row.checkpoint, row.episode_id) == ("key", "trust", 3, "e1")
    assert (row.expected_final_score, row.success_belief, row.reply, row.prompt_tokens) == (
        12.5,
        0.8,
        REPLY,
        9,
    )


def test_a_failed_call_is_a_row_with_its_error() -> None:
    row = judged(Programmed(ModelError("rate_limit", "slow down")))

    assert (row.error_kind, row.error_message, row.reply) == ("rate_limit", "slow down", None)
    assert (row.expected_final_score, row.success_belief, row.retain, row.avoid) == (None,) * 4
