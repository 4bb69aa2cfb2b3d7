"""Which weights stay on disk. What was taken away says so, and is made again when something rests on it.

weights/<part>/            the weights of an update
weights/<part>.removed     in their place once ``training.keep`` let them go
"""

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from s3gym import storage
from s3gym.plan import Stage, missing
from s3gym.subjects import Subject


def weights_folder(data: Path, stage: Stage) -> Path:
    """Where the weights of an update are."""
    return data / "weights" / stage.whole


def lost_weights(data: Path, stages: Sequence[Stage]) -> set[str]:
    """Keys of updates whose weights were taken away, or are gone, though a missing stage starts from them."""
    lost: set[str] = set()
    for stage in reversed(stages):
        source = stage.experience
        if source is None or not source.subject.pathway.IS_TRAINED or not (stage.key in lost or missing(data, stage)):
            continue
        holder = _made_by(data, source)
        if holder is not None and (not (data / holder).is_dir() or storage.removal_mark(data / holder).exists()):
            lost.update(each.key for each in _chain(source) if weights_folder(data, each) == data / holder)
    return lost


def recall_weights(data: Path, stages: Sequence[Stage]) -> None:
    """Lets updates be made again whose weights are needed and gone."""
    lost = lost_weights(data, stages)
    for stage in stages:
        if stage.key in lost:
            storage.manifest_path(data, stage.whole).unlink(missing_ok=True)
            storage.removal_mark(weights_folder(data, stage)).unlink(missing_ok=True)


def clear_weights(data: Path, subject: Subject, stages: Sequence[Stage]) -> None:
    """Takes away what ``training.keep`` does not ask for, once the whole cell is done."""
    if not subject.pathway.IS_TRAINED or subject.training.keep == "all" or any(missing(data, s) for s in stages):
        return
    updates = [stage for stage in stages if stage.kind == "build_experience" and stage.subject is subject]
    if not updates:  # they are another cell's
        return
    kept = {_made_by(data, updates[-1])}
    if subject.training.keep == "best":
        kept.add(_made_by(data, _best(data, stages)))
    for stage in updates:
        folder = weights_folder(data, stage)
        if folder.is_dir() and folder.relative_to(data).as_posix() not in kept:
            storage.removal_mark(folder).touch()  # first: half a folder would be taken for a whole one
            shutil.rmtree(folder)


def _best(data: Path, stages: Iterable[Stage]) -> Stage:
    """The update after which held-out episodes scored most; the earliest of equals."""
    means: dict[Stage, float] = {}
    for stage in stages:
        if stage.kind == "evaluate" and not stage.is_transfer and stage.experience is not None:
            rows = [
                row
                for part in storage.parts_of(data, stage.stem)
                for row in storage.read_part(data, "episodes", stage.subject.game.id, part)
            ]
            means[stage.experience] = sum(row["final_score"] or 0.0 for row in rows) / max(len(rows), 1)
    return max(means, key=lambda update: means[update])


def _made_by(data: Path, update: Stage) -> str | None:
    """The folder, within the data folder, of the weights an update ends with; None for those of the model itself."""
    rows = (
        storage.read_part(data, "experiences", update.subject.game.id, update.whole)
        if not missing(data, update)
        else []
    )
    return rows[0]["path"] if rows else None


def _chain(update: Stage) -> Iterable[Stage]:
    """An update and those before it."""
    current: Stage | None = update
    while current is not None:
        yield current
        current = current.experience
