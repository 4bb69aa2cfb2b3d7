"""The vocabulary: one frozen dataclass a table, one field a column.

These classes are the only definition of the data model: ``storage`` derives each Arrow schema from the
annotations (``X | None`` is a nullable column) and the field notes below are the data dictionary.
They hold facts, written once. Everything that can be computed from them is SQL, in ``sql/``.
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One request to measure: which cells somebody asked for, and when. Table ``runs``."""

    run_id: str
    """Hash of the whole request, so that the same request is the same run."""
    requested_at: datetime
    """UTC; the latest run is what the marts show unless asked otherwise."""
    scale: str
    config: str
    """The resolved configuration as JSON."""
    package_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One (model, game, pathway, intervention, replicate, settings) of a run. Table ``cells``."""

    run_id: str
    cell_id: str
    """Made of what it names, ending in a hash of every setting that can change its results."""
    model_id: str
    model_revision: str | None
    game: str
    game_version: int
    pathway: str
    intervention: str
    replicate: int
    base_seed: int
    exploration_config: str
    """The game's exploration configuration as JSON."""
    evaluation_config: str
    exploration_config_id: str
    """Hash of game, VERSION and configuration; joins ``anchors.config_id``."""
    evaluation_config_id: str
    prompt_version: int
    temperature: float | None
    """Null means the provider's default."""
    max_output_tokens: int
    exploration_episode_count: int
    """Budget: exploration episodes of the cell; 0 for the pathway ``none``."""
    evaluation_interval: int
    """Exploration episodes between two checkpoints."""
    evaluation_episode_count: int
    """Budget: held-out episodes a checkpoint."""
    evaluation_set: str
    """``fixed`` (the same instances at every checkpoint) or ``fresh``."""
    history_token_limit: int
    history_cut: str
    """``newest`` or ``oldest``: which end of the history is cut at the limit."""
    explorer_id: str | None
    """Who explored in its place; null where the model explored itself."""
    training: str | None
    """How experience became weights, as JSON; null where it did not."""
    score_aggregation: str
    """How the game makes a final score from its rewards: ``sum`` or ``mean``."""
    reward_min: float
    """Declared lowest verifier reward of one step (evaluation configuration)."""
    reward_max: float
    smallest_positive_score: float
    """The game's smallest positive final score of one episode; NABA's eps is this over the checkpoint's episodes."""
    is_instances_shared: bool
    """True when exploration and evaluation draw on the same few instances, as the game declares."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellStage:
    """Which stage outputs a cell uses, and how far. Table ``cell_stages``."""

    run_id: str
    cell_id: str
    stage_key: str
    stage: str
    """``explore``, ``self_judge``, ``build_experience``, ``evaluate``, or ``transfer``: its experience evaluated
    in another game."""
    checkpoint: int
    """Exploration episodes behind the agent when the stage begins (for ``build_experience``: when it is built)."""
    episode_count: int
    """Episodes of the stage this cell uses: rows with a larger ``episode_index`` belong to bigger budgets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFacts:
    """What one model call took; part of every row that rests on a call. Null where nothing was reported."""

    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    """Part of ``prompt_tokens`` that a provider served from its cache."""
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    latency_seconds: float | None = None
    """Of the call as first made; null for scripted players, which are not calls."""
    finish_reason: str | None = None
    error_kind: str | None = None
    """Null when the call succeeded, else one of ``models.base.ERROR_KINDS``."""
    error_message: str | None = None
    dropped_parameters: str | None = None
    """Settings the provider does not take and the call was made without, such as ``seed, temperature``."""
    failed_attempts: int | None = None
    """Calls for the same request that failed before this one, over all restarts; null for scripted players."""
    failed_cost_usd: float | None = None
    """What those cost, where a provider said so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(CallFacts):
    """One model turn. Table ``steps``, key (stage_key, episode_id, step_index)."""

    stage_key: str
    game: str
    phase: str
    """``exploration`` or ``evaluation``."""
    checkpoint: int
    """Evaluation: the checkpoint measured. Exploration: the checkpoint the block started from."""
    episode_id: str
    step_index: int
    """From 0."""
    observation: str
    """The state as the agent saw it, without the feedback of the step before."""
    reply: str | None = None
    """The model's raw text; null when the call failed."""
    reasoning: str | None = None
    """Thinking the model returned apart from its reply."""
    action: str | None = None
    """Canonical action; null when none could be used."""
    action_status: str | None = None
    """``ok``, ``repaired``, ``unparsable``, ``invalid``, ``illegal`` or ``ambiguous``; null when the call failed."""
    self_score: float | None = None
    """The agent's estimate of ``verifier_reward``, in the same unit; null where it gave none."""
    feedback: str | None = None
    """What the environment answered; never depends on hidden truth."""
    verifier_reward: float | None = None
    """The game's own reward of the step, in the game's unit; never shown to the agent; null when the call failed."""
    is_terminated: bool
    """Ended by the rules after this step."""
    is_truncated: bool
    """Cut off by the horizon after this step."""
    history_tokens_dropped: int
    """Tokens of earlier-episode history that did not fit the limit, in the prompt of this step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One play from reset to end. Table ``episodes``, key (stage_key, episode_id)."""

    stage_key: str
    game: str
    phase: str
    checkpoint: int
    episode_id: str
    episode_index: int
    """From 0; within the cell for exploration, within the checkpoint for evaluation."""
    seed: int
    instance_id: str
    """Hash of the start position and everything drawn ahead; equal ids are the same task."""
    config: str
    """The configuration played, as JSON."""
    game_version: int
    final_score: float | None
    """The verifier's score of the episode in the game's unit; null when the episode is invalid."""
    is_success: bool | None
    """Whether ``final_score`` reaches the game's declared success score."""
    step_count: int
    end_reason: str
    """The rule that ended it, ``horizon``, or the error kind of an invalid episode."""
    final_observation: str
    """The state after the last step."""
    status: str
    """``valid``, or ``invalid`` when a call failed: never a score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgment(CallFacts):
    """The agent's retrospective view of one exploration episode. Table ``judgments``."""

    stage_key: str
    game: str
    checkpoint: int
    episode_id: str
    """Of the exploration episode judged."""
    reply: str | None
    expected_final_score: float | None
    """What the agent believes the verifier gave, in the game's unit; null where it said nothing readable."""
    success_belief: float | None
    """Probability 0 to 1 the agent gives to having succeeded."""
    retain: str | None
    avoid: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Experience(CallFacts):
    """What a pathway made of the episodes so far. Table ``experiences``, key (stage_key, checkpoint)."""

    stage_key: str
    game: str
    pathway: str
    """``any`` where nothing a pathway carries is in it, such as a reference guide: pathways share it."""
    checkpoint: int
    """Exploration episodes it rests on."""
    kind: str
    """``history``, ``memory`` or ``weights``, then what an intervention changed in it, such as ``oracle scores``,
    or the guide that it put in its place, such as ``reference guide``."""
    text: str | None
    """The memory text; null for history, which is the steps themselves, and for weights."""
    path: str | None = None
    """Folder of the weights within the data folder; null for texts, and where no update has been made yet."""
    is_updated: bool | None = None
    """Whether weights changed with these episodes: too few rows leave them as they were; null for texts."""
    content_hash: str | None
    """SHA-256 of what the agent gets to read, or of the weights; null when building failed, or before any update."""
    token_count: int | None
    """Size of what the agent gets to read, in the model's own tokens or the stated estimate; of weights, the tokens
    they were trained on."""
    source_episode_ids: list[str]
    steps_kept: int | None
    steps_dropped: int | None
    """Earlier steps that did not fit the history limit; for weights, those that were not trained on."""
    tokens_dropped: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SftRow(CallFacts):
    """One exploration step considered for training. Table ``sft_rows``, key (stage_key, episode_id, step_index).

    The call is the one that was asked for a better action, where that is done.
    """

    stage_key: str
    """Of the update."""
    game: str
    checkpoint: int
    """Exploration episodes the update rests on."""
    episode_id: str
    step_index: int
    self_score: float | None
    signal: float | None
    """What the selection went by: the self-score, or their sum from this step to the end of the episode."""
    decision: str
    """``kept``, ``corrected`` (kept with a better answer) or ``filtered``."""
    reason: str
    """The rule that decided, in a word."""
    weight: float | None
    """Of its loss; null when filtered."""
    reply: str | None
    """The better answer; null where the step's own reply is trained on, or nothing is."""
    trained_prompt_tokens: int | None
    trained_reply_tokens: int | None
    """Tokens the loss is taken on, the one that ends the answer included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingStep:
    """One change of the weights. Table ``training_steps``, key (stage_key, update_step)."""

    stage_key: str
    game: str
    checkpoint: int
    """Exploration episodes the update rests on."""
    update_step: int
    """From 0."""
    epoch: float
    """Passes over the rows when the step is done, 0 to the number of epochs."""
    row_count: int
    token_count: int
    """Tokens computed, prompts included."""
    loss: float
    """Mean cross-entropy of the reply tokens, in nats, each row by its weight; before the step."""
    gradient_norm: float
    """Before it is clipped."""
    learning_rate: float
    seconds: float
    peak_memory_bytes: int | None
    """Of the device since the update began, or (CPU) of the process since it began; null where it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """A reference player's mean score; random and expert set the normalised scale. Table ``anchors``."""

    game: str
    config_id: str
    phase: str
    """Whose configuration: ``exploration`` or ``evaluation``."""
    player: str
    mean: float
    standard_deviation: float
    standard_error: float
    """0 when exact."""
    episode_count: int
    """0 when exact (an expectation, not a sample)."""
    game_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Refresh:
    """One going through a run's stages: when, why, with what, and what it took. Table ``refreshes``, a log."""

    refresh_id: str
    """When it began, and the run."""
    run_id: str
    started_at: datetime
    """UTC."""
    ended_at: datetime
    trigger: str
    """``manual`` or ``schedule``."""
    status: str
    """``complete``, ``failed``, ``stopped`` (by a limit or a signal) or ``nothing_to_do``."""
    versions: str
    """JSON: of the package, Python, the libraries that results may depend on, and the prompts."""
    stages_made: int
    calls_made: int
    """Model calls, failed ones included; scripted players make none."""
    paid_usd: float | None
    """Null where the cost of a call is not known."""
    reasons: str
    """JSON: how many stages were to be made, by what changed since they were last made."""
    failure: str | None
    """The first sentence that says what went wrong or stopped it; null when nothing did."""
    verdicts: str | None
    """JSON: the verdict of each cell as the report of this refresh had it; null where no report came of it."""


SHIPPED_ANCHORS = Path(__file__).with_name("anchors.csv")
"""Anchors of the games' own configurations, measured once and shipped."""

TABLES: dict[str, type] = {
    "runs": Run,
    "cells": Cell,
    "cell_stages": CellStage,
    "steps": Step,
    "episodes": Episode,
    "judgments": Judgment,
    "experiences": Experience,
    "sft_rows": SftRow,
    "training_steps": TrainingStep,
    "anchors": Anchor,
    "refreshes": Refresh,
}
