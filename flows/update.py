"""Stage: judged steps become weights. Tables ``experiences``, ``sft_rows`` and ``training_steps``, and a folder.

The rows come from the explore stages behind the update and from nowhere else, so a held-out episode cannot be among
them; they are chosen by self-scores, in types that have no field for a verifier's reward. An intervention alone may put
other scores in their place.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any

from flows.runtime import Runtime, StageFailed, Workbench, all_of, rescored, stored_episodes, trained, weights_of
from flows.weights import weights_folder
from s3gym.models.base import Change, Completion, Example, ModelError, Request, Trainable, TrainingFailed, Weights
from s3gym.pathways.training import CORRECTABLE, Choice, Considered, corrected, correction_messages, select
from s3gym.plan import Stage
from s3gym.protocol.rollout import scene_of
from s3gym.protocol.splits import hashed
from s3gym.protocol.trajectories import prompts, states, usable_action
from s3gym.records import CallFacts, Episode, Experience, SftRow, Step, TrainingStep
from s3gym.transcript import Message


@dataclass(frozen=True)
class _Row:
    """One explored step on its way into the weights."""

    step: Step
    score: float | None
    """What it is ranked by: the agent's own, unless an intervention has another in its place."""
    messages: tuple[Message, ...]
    state: Any
    choice: Choice
    better: Completion | None = None
    """The answer in place of the step's own."""
    facts: CallFacts = CallFacts()
    """Of the call that asked for one."""
    example: Example | None = None


async def update(stage: Stage, runtime: Runtime) -> list[dict[str, Any]]:
    """Chooses rows and trains on them; the manifest of what was written.

    Raises:
        StageFailed: a call for a better action failed, or training did.
    """
    model, settings = stage.subject.model, stage.subject.training
    assert isinstance(model, Trainable)  # a plan has no other
    async with trained(runtime, stage) as now:
        bench = Workbench(runtime, stage, now)
        rows = _chosen(stage, list(stored_episodes(runtime, stage)))
        if settings.correct:
            rows = await all_of(_reconsidered(stage, bench, row) for row in rows)
    rows = [_tokenised(stage, model, row) for row in rows]
    failed = next((row.facts for row in rows if row.facts.error_kind is not None), None)
    examples = [row.example for row in rows if row.example is not None]
    weights, changes = weights_of(runtime, stage.experience), list[Change]()
    failure = None if failed is None else f"a call for a better action failed ({failed.error_message})"
    is_updated = len(examples) >= settings.minimum_rows
    if failure is None and is_updated:
        try:
            weights = await _train(stage, runtime, model, examples, weights, changes)
        except TrainingFailed as error:
            failure = str(error)
    tables: dict[str, Sequence[Any]] = {
        "sft_rows": [_sft_row(stage, row) for row in rows],
        "training_steps": [
            TrainingStep(
                stage_key=stage.key,
                game=stage.subject.game.id,
                checkpoint=stage.checkpoint,
                update_step=index,
                **asdict(change),
            )
            for index, change in enumerate(changes)
        ],
        "experiences": []
        if failure
        else [_experience(stage, runtime, rows, weights, examples if is_updated else [], is_updated)],
    }
    manifest = bench.write(stage.first, stage.last, tables, failure is None)
    if failure is not None:
        raise StageFailed(f"{stage.label}: {failure}")
    return [manifest]


def _chosen(stage: Stage, played: Sequence[tuple[Episode, list[Step]]]) -> list[_Row]:
    """Every explored step with what becomes of it."""
    subject = stage.subject
    steps = [step for _, own in played for step in own]
    scores = rescored(stage, played, subject.replaced.ranking)
    considered = [
        Considered(
            episode_id=step.episode_id,
            step_index=step.step_index,
            self_score=score,
            action_status=step.action_status,
            finish_reason=step.finish_reason,
            feedback=step.feedback,
        )
        for step, score in zip(steps, scores, strict=True)
    ]
    seed = hashed(subject.run.seed, subject.scope, "select", stage.checkpoint)
    choices = select(considered, subject.training, subject.game.training_signal, seed)
    judged = zip(scores, choices, strict=True)
    return [
        _Row(step, score, messages, state, choice)
        for episode, own in played
        for step, messages, state, (score, choice) in zip(
            own,
            prompts(subject.game, subject.exploration, own),
            states(subject.game, subject.exploration, episode.seed, own),
            islice(judged, len(own)),
            strict=True,
        )
    ]


async def _reconsidered(stage: Stage, bench: Workbench, row: _Row) -> _Row:
    """The row with a better action, where one is asked for and given."""
    step, subject = row.step, stage.subject
    if row.choice.reason not in CORRECTABLE or step.reply is None or row.score is None:
        return row
    request = Request(
        messages=correction_messages(row.messages, step.reply, row.score),
        purpose="act",
        seed=hashed(subject.run.seed, subject.scope, "correct", stage.checkpoint, step.episode_id, step.step_index),
        decoding=subject.decoding,
        scene=scene_of(subject.game, subject.exploration, subject.game.view(row.state)),
    )
    try:
        better = await bench.asker.ask(request)
    except ModelError as error:
        return replace(row, choice=corrected(row.choice, step.action, None), facts=error.facts)
    action = usable_action(subject.game, row.state, better)
    return replace(row, choice=corrected(row.choice, step.action, action), better=better, facts=better.facts)


def _tokenised(stage: Stage, model: Trainable, row: _Row) -> _Row:
    """The row as tokens; filtered when it is too long, or when they are not those of the call."""
    step, choice = row.step, row.choice
    if choice.decision == "filtered":
        return row
    reply, reasoning, facts = step.reply, step.reasoning, step
    is_own = stage.subject.explorer is None
    if choice.decision == "corrected" and row.better is not None:
        reply, reasoning, is_own = row.better.text, row.better.reasoning, False
    example = model.example(row.messages, reply or "", reasoning)
    reply_count = len(example.tokens) - example.prompt_count
    if len(example.tokens) > stage.subject.training.row_tokens:
        return replace(row, choice=replace(choice, decision="filtered", reason="too_long", weight=None))
    counted = ((facts.prompt_tokens, example.prompt_count), (facts.completion_tokens, reply_count))
    if is_own and any(told is not None and told != count for told, count in counted):
        return replace(row, choice=replace(choice, decision="filtered", reason="retokenised", weight=None))
    assert choice.weight is not None  # of what is not filtered
    return replace(row, example=replace(example, weight=choice.weight))


async def _train(
    stage: Stage,
    runtime: Runtime,
    model: Trainable,
    examples: Sequence[Example],
    start: Weights | None,
    changes: list[Change],
) -> Weights:
    subject, folder = stage.subject, weights_folder(runtime.data, stage)
    card = {
        "Game": f"{subject.game.id} (version {subject.game.VERSION})",
        "Exploration episodes": f"{stage.first} to {stage.last - 1}",
        "Explored by": stage.explored[-1].model.model_id,
        "Update": stage.key,
        "Data": " ".join(source.key for source in stage.explored),
        "Started from": start.digest if start else "the untrained model",
    }

    def tell(change: Change) -> None:
        changes.append(change)
        runtime.on_event("change", 1)

    digest = await model.train(
        examples,
        subject.training,
        start=start,
        seed=hashed(subject.run.seed, subject.scope, "train", stage.checkpoint),
        folder=folder,
        card=card,
        on_update=tell,
    )
    return Weights(folder=folder, digest=digest)


def _experience(
    stage: Stage,
    runtime: Runtime,
    rows: Sequence[_Row],
    weights: Weights | None,
    examples: Sequence[Example],
    is_updated: bool,
) -> Experience:
    kept = sum(1 for row in rows if row.example is not None)
    return Experience(
        stage_key=stage.key,
        game=stage.subject.game.id,
        pathway=stage.subject.pathway_id,
        checkpoint=stage.checkpoint,
        kind=stage.subject.replaced.marked("weights"),
        text=None,
        path=weights.folder.relative_to(runtime.data).as_posix() if weights else None,
        is_updated=is_updated,
        content_hash=weights.digest if weights else None,
        token_count=sum(len(example.tokens) for example in examples),
        source_episode_ids=list(dict.fromkeys(row.step.episode_id for row in rows)),
        steps_kept=kept,
        steps_dropped=len(rows) - kept,
        tokens_dropped=None,
    )


def _sft_row(stage: Stage, row: _Row) -> SftRow:
    example, is_corrected = row.example, row.choice.decision == "corrected"
    return SftRow(
        stage_key=stage.key,
        game=stage.subject.game.id,
        checkpoint=stage.checkpoint,
        episode_id=row.step.episode_id,
        step_index=row.step.step_index,
        self_score=row.step.self_score,
        signal=row.choice.signal,
        decision=row.choice.decision,
        reason=row.choice.reason,
        weight=row.choice.weight,
        reply=row.better.text if is_corrected and row.better else None,
        trained_prompt_tokens=example.prompt_count if example else None,
        trained_reply_tokens=len(example.tokens) - example.prompt_count if example else None,
        **asdict(row.facts),
    )
