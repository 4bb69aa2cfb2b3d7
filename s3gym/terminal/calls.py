"""``calls``: the model calls that were paid or computed, from the journal. Changes nothing, works beside a run."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from s3gym import storage
from s3gym.errors import Explained
from s3gym.journal import FILE, Call, Journal
from s3gym.records import CallFacts
from s3gym.terminal.console import console, exact, inert, plain, verbatim

SHORT = 12
"""Characters of a key in a table; enough to tell a hundred thousand calls apart."""
FACTS = [field.name for field in fields(CallFacts) if not field.name.startswith("failed_")]
"""What is known of one attempt; those before it are attempts of their own here."""
COLUMNS = ["key", "attempt", "model_id", "purpose", "stage_key", "seed", "created_at", "is_answered", *FACTS]


class UnknownCall(Explained):
    """No call, or more than one, has a key that begins as asked."""


def open_journal(data: Path) -> Journal | None:
    """The journal of ``data`` to read in; None where no model call was ever made. Raises StorageError."""
    storage.check_version(data)
    path = data / FILE
    return Journal(path, is_read_only=True) if path.exists() else None


def list_calls(data: Path, stage: str, model_id: str | None, only_failed: bool, limit: int, output: str) -> None:
    """Lists the newest calls as ``table``, ``json`` or ``csv``."""
    journal = open_journal(data)
    found: list[Call] = []
    if journal is not None:
        with journal:
            found = journal.calls(limit, stage, model_id, only_failed)
    if output == "json":
        exact(json.dumps([_row(call) for call in found], indent=1))
    elif output == "csv":
        exact(_csv(found))
    else:
        if found:
            _print_table(found)
            if len(found) == limit:
                console.print(f"The newest {limit}; --limit shows more.", highlight=False)
        else:
            console.print("No such call. Scripted players are not recorded; all other models are.")


def show_call(data: Path, key: str, output: str) -> None:
    """Shows the one call whose key begins with ``key``, all its attempts, as text or ``json``."""
    journal = open_journal(data)
    if journal is None:
        raise UnknownCall(f"no call begins with {key!r}: no model call was made in {data}")
    with journal:
        attempts = journal.attempts_of(key)
        keys = sorted({call.key for call in attempts})
        if len(keys) != 1:
            some = ", ".join(found[: max(SHORT, len(key) + 4)] for found in keys[:5]) or "none"
            raise UnknownCall(f"{len(keys)} calls begin with {key!r} ({some}); `s3gym calls` lists their keys")
        messages = journal.request_of(attempts[0])
        answers = [journal.answer_of(call) or (None, None) for call in attempts]
    if output == "json":
        told = [
            {**_row(call), "text": text, "reasoning": reasoning}
            for call, (text, reasoning) in zip(attempts, answers, strict=True)
        ]
        exact(json.dumps({"messages": messages, "attempts": told}, indent=1))
        return
    first = attempts[0]
    verbatim(f"{first.key}\n{first.model_id}   {first.purpose}   stage {first.stage_key or '-'}   seed {first.seed}")
    for number, message in enumerate(messages, 1):
        console.rule(Text(inert(f"message {number} of {len(messages)}: {message['role']}")))
        verbatim(message["content"])
    for call, (text, reasoning) in zip(attempts, answers, strict=True):
        console.rule(Text(inert(f"attempt {call.attempt}: {_status(call.facts)}")))
        known = {"created_at": call.created_at, **{name: getattr(call.facts, name) for name in FACTS}}
        verbatim("   ".join(f"{name}: {plain(value)}" for name, value in known.items() if value is not None))
        for name, said in (("reasoning", reasoning), ("reply", text)):
            if said is not None:
                verbatim(f"\n{name}: {said}")


def _row(call: Call) -> dict[str, Any]:
    values = {**asdict(call), **asdict(call.facts)}
    return {name: values[name] for name in COLUMNS}


def _csv(calls: Sequence[Call]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_row(call) for call in calls)
    return text.getvalue().rstrip("\n").encode("utf-8", "backslashreplace").decode()


def _print_table(calls: Sequence[Call]) -> None:
    table = Table()
    for name in ("key", "attempt", "model", "purpose", "stage", "ended (UTC)"):
        table.add_column(name, no_wrap=True)
    for name in ("tokens", "dollars", "seconds"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("status")
    for call in calls:
        facts = call.facts
        table.add_row(
            call.key[:SHORT],
            str(call.attempt),
            Text(inert(call.model_id)),
            call.purpose,
            (call.stage_key or "-")[:SHORT],
            call.created_at[5:19].replace("T", " "),
            f"{plain(facts.prompt_tokens)} + {plain(facts.completion_tokens)}",
            plain(facts.cost_usd),
            plain(facts.latency_seconds),
            Text(inert(_status(facts)), "red" if facts.error_kind else ""),
        )
    console.print(table)


def _status(facts: CallFacts) -> str:
    return facts.error_kind or facts.finish_reason or "answered"
