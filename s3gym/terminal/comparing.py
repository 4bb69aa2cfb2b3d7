"""``bench training``: an update and an evaluation, laid out beside transformers and peft alone."""

import json
from typing import Any

from rich.table import Table

from s3gym.bench.harness import BenchError
from s3gym.bench.host import processor_name
from s3gym.bench.training import OVERHEAD_TARGET, Load, Measured, Training, Work, measure_training
from s3gym.terminal.console import console, errors, verbatim

NAMES = {"own": "s3gym", "lean": "s3gym with cache=0", "peer": "transformers and peft alone"}


def bench_training(load: Load, output: str) -> int:
    """Times training and shows the result; the exit code, 1 when a pass failed."""
    with errors.status("Preparing ...") as status:

        def on_pass(work: str, side: str, number: int) -> None:
            status.update(f"Timing {work} {number + 1} of {load.repeat}, {NAMES[side]} ...")

        try:
            training = measure_training(load, on_pass)
        except BenchError as error:
            errors.print(f"Failed: {error}", markup=False, highlight=False, soft_wrap=True)
            return 1
    if output == "json":
        verbatim(json.dumps(as_json(training), indent=2))
    else:
        console.print(_table(training))
        verbatim("\n".join(_sentences(training)))
    return 0


def as_json(training: Training) -> dict[str, Any]:
    """All figures."""
    return {
        "processor": processor_name(),
        **training.facts,
        "load": training.load._asdict(),
        "overhead_target": OVERHEAD_TARGET,
        "measured": [_measured_json(one) for one in training.measured()],
        "lean": training.lean._asdict(),
        "works": {work.name: _work_json(work) for work in (training.update, training.evaluation)},
    }


def _measured_json(one: Measured) -> dict[str, Any]:
    return {**one._asdict(), "ratio": one.ratio, "aim": one.aim, "is_reached": one.is_reached}


def _work_json(work: Work) -> dict[str, Any]:
    return {
        "cpu_ratio": work.cpu_ratio,
        "alike": work.alike,
        "own": [one._asdict() for one in work.own],
        "peer": [one._asdict() for one in work.peer],
    }


def _table(training: Training) -> Table:
    model, count = training.load.model or "a random model", training.facts["parameter_count"]
    table = Table(title=f"{model}, {count / 1e6:.0f} million parameters, {training.facts['dtype']}")
    for heading in ("", "unit"):
        table.add_column(heading)
    for heading in ("s3gym", "peer", "s3gym / peer", "in pairs", "aim", ""):
        table.add_column(heading, justify="right")
    for one in training.measured():
        table.add_row(
            one.what,
            one.unit,
            f"{one.own:,.0f}",
            f"{one.peer:,.0f}",
            f"{one.ratio:.2f}x",
            f"{min(one.pairs):.2f} to {max(one.pairs):.2f}",
            f"{'at most' if one.aim > 1 else 'at least'} {one.aim:.2f}x",
            "reached" if one.is_reached else "missed",
        )
    return table


def _sentences(training: Training) -> list[str]:
    load, facts = training.load, training.facts
    settings = ", ".join(f"{name} {value:g}" for name, value in facts["settings"].items())
    rows, prompts = (_range(facts[name]) for name in ("row_tokens", "prompt_tokens"))
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    (loss, *_), (peers, *_) = training.update.own[0].said, training.update.peer[0].said
    alike, count = training.evaluation.alike
    return [
        f"Peer: transformers and peft alone, in the same run. Update: {load.steps} steps of {load.batch} rows of "
        f"{rows} tokens, computed at once; LoRA on all linear layers, AdamW, {settings}.",
        f"Evaluation: {count} prompts of {prompts} tokens with that adapter, {load.batch} at once, greedy, at most "
        f"{load.new_tokens} new tokens; in fp32 both add the adapter into the weights first. No two prompts begin "
        "alike, so keeping their beginnings takes memory and saves nothing here; with cache=0 none are kept.",
        f"Each pass is a process of its own; {load.repeat} of each side, which take turns to be first; of speeds the "
        "best counts, of memory the worst. In pairs: the ratio of passes that followed one another; the further "
        "apart, the noisier the machine was.",
        f"CPU time of a whole pass, s3gym / peer: {training.update.cpu_ratio:.2f}x an update, "
        f"{training.evaluation.cpu_ratio:.2f}x an evaluation.",
        f"The same work: loss of the last step {loss}, the peer's {peers}; {alike} of {count} answers are the same.",
        f"On {facts['device']}, {facts['thread_count']} threads, {processor_name()}; Python {facts['python']}, "
        f"{versions}.",
    ]


def _range(counts: list[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low}" if low == high else f"{low} to {high}"
