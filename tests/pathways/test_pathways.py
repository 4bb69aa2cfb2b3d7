"""What experience is made of: exact counts, one call at most, and nothing but transcripts."""

import asyncio
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from s3gym import registry, subjects
from s3gym.models.base import Completion, ModelError, Request, estimate_tokens
from s3gym.pathways import history, memory, none
from s3gym.pathways.base import Built, Workshop, settings_of
from s3gym.records import CallFacts
from s3gym.transcript import Message, PastEpisode, PastStep
from tests.direct import measure_directly
from tests.programmed import Programmed

ALL = [registry.load("s3gym.pathways", name, "pathway") for name in registry.names("s3gym.pathways")]
PATHWAYS = [pathway for pathway in ALL if not pathway.IS_TRAINED]
"""Those whose experience is text."""
CHARACTERS = len
"""A token count that can be checked by eye: one a character."""


def episode(index: int, steps: int = 2) -> PastEpisode:
    made = tuple(PastStep(f"s{index}{step}", "Answer: A, Score: 1") for step in range(steps))
    return PastEpisode(f"e{index}", made, f"end{index}")


TWO = [episode(0), episode(1)]
# Env: s00\nLLM: Answer: A, Score: 1\n   9 + 25 = 34 characters
# and at the end of an episode: Env: end0\n(end of episode)\n   10 + 17 = 27 more, 61 in all
SIZES = [34, 61, 34, 61]


class Desk:
    """A workshop that counts its calls."""

    def __init__(self, reply: str = "Retain: A.", **settings: Any) -> None:
        self.asked: list[tuple[Message, ...]] = []
        self.reply = reply
        limits = {
            "token_limit": 10_000,
            "cut": "newest",
            "memory_source": "history",
            "count_tokens": CHARACTERS,
        }
        self.workshop = Workshop(rules="THE RULES", ask=self.ask, **{**limits, **settings})

    async def ask(self, messages: tuple[Message, ...]) -> Completion:
        self.asked.append(messages)
        return Completion(text=self.reply, facts=CallFacts(prompt_tokens=99))

    @property
    def prompt(self) -> str:
        ((message,),) = self.asked
        return message["content"]


def build(pathway: Any, episodes: list[PastEpisode], desk: Desk) -> Built:
    built: Built = asyncio.run(pathway.build(episodes, desk.workshop))
    return built


# --- every pathway ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pathway", ALL, ids=lambda module: module.__name__)
def test_a_pathway_declares_itself(pathway: ModuleType) -> None:
    assert pathway.VERSION >= 1
    assert isinstance(pathway.IS_CONTROL, bool) and isinstance(pathway.IS_MODEL_ASKED, bool)
    assert hasattr(pathway, "select" if pathway.IS_TRAINED else "build")
    assert settings_of(pathway, 5, "newest", "history")["version"] == pathway.VERSION


@pytest.mark.parametrize("pathway", PATHWAYS, ids=lambda module: module.__name__)
def test_building_is_deterministic_and_asks_as_often_as_declared(pathway: ModuleType) -> None:
    desk = Desk()
    built = build(pathway, TWO, desk)

    assert len(desk.asked) == int(pathway.IS_MODEL_ASKED)
    assert build(pathway, TWO, Desk()) == built
    assert built.token_count == len(built.content)
    assert built.kind == pathway.__name__.rsplit(".", 1)[1]


@pytest.mark.parametrize("pathway", PATHWAYS, ids=lambda module: module.__name__)
def test_steps_are_kept_or_dropped_and_none_is_lost_count_of(pathway: ModuleType) -> None:
    for limit in (1, 34, 100, 1000):
        built = build(pathway, TWO, Desk(token_limit=limit))
        total = 0 if pathway.IS_CONTROL else 4
        assert built.steps_kept + built.steps_dropped == total


def test_only_the_control_carries_nothing() -> None:
    assert [pathway.__name__ for pathway in PATHWAYS if pathway.IS_CONTROL] == ["s3gym.pathways.none"]
    assert build(none, TWO, Desk()).content == ""


# --- history ------------------------------------------------------------------------------------------------


def test_history_is_the_transcripts_in_order() -> None:
    built = build(history, TWO, Desk())

    assert built.content == (
        "Env: s00\nLLM: Answer: A, Score: 1\n"
        "Env: s01\nLLM: Answer: A, Score: 1\nEnv: end0\n(end of episode)\n"
        "Env: s10\nLLM: Answer: A, Score: 1\n"
        "Env: s11\nLLM: Answer: A, Score: 1\nEnv: end1\n(end of episode)\n"
    )
    assert (built.token_count, built.steps_kept, built.steps_dropped, built.tokens_dropped) == (
        sum(SIZES),
        4,
        0,
        0,
    )
    assert built.stored_text is None


@pytest.mark.parametrize(
    ("cut", "limit", "first", "last", "token_count"),
    [
        # sizes 34, 61, 34, 61: from the head 34, 95, 129, 190 fit; from the tail 61, 95, 156, 190
        ("newest", 190, 0, 4, 190),
        ("newest", 189, 0, 3, 129),
        ("newest", 95, 0, 2, 95),
        ("newest", 94, 0, 1, 34),
        ("newest", 33, 0, 0, 0),
        ("oldest", 190, 0, 4, 190),
        ("oldest", 189, 1, 4, 156),
        ("oldest", 95, 2, 4, 95),
        ("oldest", 94, 3, 4, 61),
        ("oldest", 60, 4, 4, 0),
    ],
)
def test_history_is_cut_in_whole_steps_from_one_end(
    cut: str, limit: int, first: int, last: int, token_count: int
) -> None:
    built = build(history, TWO, Desk(token_limit=limit, cut=cut))

    segments = [segment for one in TWO for segment in one.segments()]
    assert [len(segment) for segment in segments] == SIZES
    assert built.content == "".join(segments[first:last])
    assert (built.steps_kept, built.steps_dropped) == (last - first, 4 - (last - first))
    assert (built.token_count, built.tokens_dropped) == (token_count, 190 - token_count)
    assert built.token_count <= limit


def test_a_step_too_large_ends_the_history_though_a_smaller_one_behind_it_would_fit() -> None:
    # from the head 34 fits, 34 + 61 does not, and nothing is taken from behind a hole
    built = build(history, TWO, Desk(token_limit=70))

    assert (built.steps_kept, built.token_count) == (1, 34)


def test_tokens_are_the_models_own() -> None:
    built = build(history, TWO, Desk(count_tokens=estimate_tokens))

    assert built.token_count == 9 + 16 + 9 + 16  # a quarter of 34 and 61, rounded up


def test_the_hash_is_of_what_is_read() -> None:
    whole, cut = build(history, TWO, Desk()), build(history, TWO, Desk(token_limit=100))

    assert whole.content_hash == build(history, TWO, Desk()).content_hash != cut.content_hash
    assert len(whole.content_hash) == 64


# --- memory -------------------------------------------------------------------------------------------------


def test_memory_is_the_answer_to_one_call_on_rules_and_history() -> None:
    desk = Desk("Retain: cheat.")
    built = build(memory, TWO, desk)

    places = [desk.prompt.index(part) for part in ("THE RULES", "Env: s00", "Env: s11", "Retain, Avoid and Next")]
    assert places == sorted(places)
    assert (built.content, built.stored_text, built.kind) == ("Retain: cheat.", "Retain: cheat.", "memory")
    assert built.token_count == len("Retain: cheat.")
    assert built.facts.prompt_tokens == 99
    assert (built.steps_kept, built.steps_dropped) == (4, 0)


def test_memory_rests_on_what_the_limit_leaves_of_history() -> None:
    desk = Desk(token_limit=97)
    built = build(memory, TWO, desk)

    assert "s01" in desk.prompt and "s10" not in desk.prompt
    assert (built.steps_kept, built.steps_dropped, built.tokens_dropped) == (2, 2, 97)


@pytest.mark.parametrize(("cut", "ends"), [("newest", ["1"]), ("oldest", ["2"])])
def test_an_episode_keeps_its_number_whatever_is_cut(cut: str, ends: list[str]) -> None:
    # the last step of an episode has 61 characters, and 63 with " 1"; the other one 34
    desk = Desk(token_limit=34 + 63, cut=cut)
    built = build(memory, TWO, desk)

    assert re.findall(r"\(end of episode (\d)\)", desk.prompt) == ends
    assert (built.steps_kept, built.steps_dropped, built.tokens_dropped) == (2, 2, 97)


def test_history_has_no_numbers() -> None:
    assert build(history, TWO, Desk()).content.count("(end of episode)") == 2


def test_recursive_memory_reads_the_last_memory_and_only_what_is_new() -> None:
    desk = Desk(memory_source="recursive", previous="Retain: old tip.")
    build(memory, TWO, desk)

    assert desk.prompt.index("Retain: old tip.") < desk.prompt.index("Env: s10")
    assert "s00" not in desk.prompt


def test_recursive_memory_begins_with_all_there_is() -> None:
    desk = Desk(memory_source="recursive")
    build(memory, TWO, desk)

    assert "s00" in desk.prompt and "s11" in desk.prompt


def test_memory_from_history_does_not_read_the_last_memory() -> None:
    desk = Desk(previous="Retain: old tip.")
    build(memory, TWO, desk)

    assert "old tip" not in desk.prompt and "s00" in desk.prompt


@pytest.mark.parametrize(
    ("source", "numbers"),
    [
        ("recursive", [["1"], ["2"], ["3"], ["4"]]),
        ("history", [["1"], ["1", "2"], ["1", "2", "3"], ["1", "2", "3", "4"]]),
    ],
)
def test_in_a_cell_each_memory_rests_on_the_last_one_or_on_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, numbers: list[list[str]]
) -> None:
    def answer(request: Request) -> str:
        said = {
            "act": "Answer: cheat, Score: 1",
            "judge": "",
            "remember": f"TIP {len(model.prompts('remember'))}",
        }
        return said[request.purpose]

    model = Programmed(answer)
    monkeypatch.setattr(subjects, "load_model", lambda *entry: model)

    measure_directly(
        tmp_path,
        f"memory_source={source}",
        "exploration_episodes=4",
        "evaluation_interval=2",
        games=["trust"],
        models=["programmed"],
        pathways=["memory"],
    )

    # after episodes 1 and 3 on the way, after 2 and 4 at the checkpoints
    asked = [messages[0]["content"] for messages in model.prompts("remember")]
    assert [re.findall(r"\(end of episode (\d)\)", text) for text in asked] == numbers
    read = [re.findall(r"TIP \d", text) for text in asked]
    assert read == ([[], ["TIP 1"], ["TIP 2"], ["TIP 3"]] if source == "recursive" else [[], [], [], []])


def test_a_failed_memory_call_is_raised() -> None:
    class Failing(Desk):
        async def ask(self, messages: tuple[Message, ...]) -> Completion:
            raise ModelError("server", "out of order")

    with pytest.raises(ModelError, match="out of order"):
        build(memory, TWO, Failing())


def test_the_source_of_memory_is_a_setting_of_memory_alone() -> None:
    assert "memory_source" in settings_of(memory, 5, "newest", "history")
    assert "memory_source" not in settings_of(history, 5, "newest", "history")
