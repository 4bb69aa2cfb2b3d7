"""``init``: an example of a request with every setting; and the request of an earlier run, to be made again.

The example is made from the classes of ``config``: names, defaults and what stands below each field there.
"""

import ast
import inspect
import json
import textwrap
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from s3gym import config, storage
from s3gym.config import SCALES, ConfigError, GameSettings, ModelEntry, RunConfig, TrainingSettings
from s3gym.protocol.prompts import PROMPT_VERSION
from s3gym.registry import UnknownName
from s3gym.terminal.console import prose
from s3gym.versions import versions
from s3gym.warehouse import Warehouse

WIDTH = 110
"""Columns of a comment."""

EXAMPLES: dict[str, Any] = {
    "as_of": "2026-12-01",
    "transfer": "every",
    "temperature": 0.7,
    "max_calls": 10_000,
    "max_cost": 5.0,
    "id": "openai/gpt-4.1-mini",
    "pathways": ["none", "memory"],
    "games": ["snake", "trust"],
    "base_url": "http://localhost:8000/v1",
    "weights": "Qwen/Qwen3-8B",
    "explorer": "player:expert",
    "revision": "december",
    "requests_per_minute": 500,
    "tokens_per_minute": 200_000,
    "prompt_price": 0.4,
    "cached_price": 0.1,
    "completion_price": 1.6,
}
"""Values to show for settings without a default."""

_HEAD = """\
# A request to s3gym: `s3gym run {name}`. Every setting is here with its default; a line that begins with #name has
# none, or leaves it to another setting, and shows an example. Keys of providers have no place here: they are taken
# from the environment, or from a file .env in the folder that s3gym is started in.
"""


def write_example(path: Path, is_forced: bool) -> None:
    """Writes the example.

    Raises:
        ConfigError: there is a file already, and ``is_forced`` is not given.
    """
    if path.exists() and not is_forced:
        raise ConfigError(f"{path} is there already; give another name, or --force to write over it")
    storage.write_text(path, example(path.name))
    prose(f"Wrote {path}. `s3gym run {path} --dry-run` says what it takes, `s3gym run {path}` does it.")


def example(name: str) -> str:
    """The example as TOML; ``name`` is that of its file."""
    return "\n".join(
        [
            _HEAD.format(name=name),
            *_all_of(RunConfig, _setting),
            "",
            *_comment(_notes(RunConfig)["training"]),
            "[training]",
            *_all_of(TrainingSettings, _setting),
            "",
            *_comment(f"{_notes(RunConfig)['models']} A model may be just its name, or a table:"),
            "#[[models]]",
            *_all_of(ModelEntry, _entry),
            "",
            *_comment("Changes to one game; `s3gym games GAME` names what each configuration has."),
            "#[game.snake]",
            *_all_of(GameSettings, _entry),
            "",
        ]
    )


def stored_request(data: Path, run: str) -> dict[str, Any]:
    """The settings of a run that was made before.

    Args:
        data: the data folder.
        run: its id, or the beginning of it.

    Raises:
        UnknownName, ConfigError: no run, or several, are meant.
    """
    query = "select run_id, config, package_version from stg_runs order by requested_at desc"
    known = {run_id: (request, version) for run_id, request, version in Warehouse(data).sql(query).rows()}
    meant = [run] if run in known else [run_id for run_id in known if run_id.startswith(run)]
    if not meant:
        raise UnknownName("run", run, known)
    if len(meant) > 1:
        raise ConfigError(f"{run!r} is the beginning of several runs: {', '.join(meant)}; give more of it")
    request, version = known[meant[0]]
    settings: dict[str, Any] = json.loads(request)
    if told := _changed_versions(data, meant[0], version):
        prose(f"Note: run {meant[0]} was made with {told}. Stages that this changes are made anew.")
    return settings


def repeated(settings: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that what is ``given`` on top can work on: another scale brings its own budgets."""
    is_rescaled = "scale" in given and given["scale"] != settings["scale"]
    return {name: value for name, value in settings.items() if not (is_rescaled and name in SCALES["small"])}


def _changed_versions(data: Path, run_id: str, version: str) -> str:
    """What a run of a ``version`` of ours was made with, where it is not what there is now."""
    query = f"select versions from stg_refreshes where run_id = '{run_id}' order by started_at desc limit 1"
    rows = Warehouse(data).sql(query).rows()
    then: dict[str, str] = json.loads(rows[0][0]) if rows else {"s3gym": version}
    now = {**versions(), "prompts": str(PROMPT_VERSION)}
    changed = [name for name in then if then[name] != now.get(name)]
    return ", ".join(f"{name} {then[name]} (now {now.get(name, 'not installed')})" for name in changed)


def _all_of(model: type[BaseModel], write: Callable[[type[BaseModel], str, FieldInfo], Iterator[str]]) -> list[str]:
    return [line for name, info in model.model_fields.items() for line in write(model, name, info)]


def _setting(model: type[BaseModel], name: str, info: FieldInfo) -> Iterator[str]:
    """A setting with its comment; a table of its own comes later."""
    if name in ("training", "models", "game"):
        return
    if name in SCALES["small"]:
        by_scale = ", ".join(f"{scale} {budgets[name]}" for scale, budgets in SCALES.items())
        yield from _comment(f"{_note(model, name, info)} By scale: {by_scale}.")
        yield f"#{name} = {_value(SCALES['small'][name])}"
    elif info.get_default() is None:
        yield from _comment(_note(model, name, info))
        yield f"#{name} = {_value(EXAMPLES[name])}"
    else:
        yield from _comment(_note(model, name, info))
        yield f"{name} = {_value(info.get_default())}"


def _entry(model: type[BaseModel], name: str, info: FieldInfo) -> Iterator[str]:
    """A setting of something that need not be there at all."""
    yield from _comment(_note(model, name, info))
    is_table = get_origin(info.annotation) is dict
    yield f"#{name} = {{}}" if is_table else f"#{name} = {_value(EXAMPLES[name])}"


def _note(model: type[BaseModel], name: str, info: FieldInfo) -> str:
    """What is known of a setting: its note, and its choices."""
    said = [_notes(model).get(name, "")]
    if choices := _choices(info.annotation):
        said.append(f"One of {', '.join(choices)}.")
    return " ".join(filter(None, said))


def _choices(annotation: Any) -> list[str]:
    if get_origin(annotation) is Literal:
        return [_value(choice) for choice in get_args(annotation)]
    if isinstance(annotation, UnionType):
        return [choice for kind in get_args(annotation) for choice in _choices(kind)]
    return []


@cache
def _notes(model: type[BaseModel]) -> dict[str, str]:
    """The note below each field of a class of ``config``."""
    tree = ast.parse(inspect.getsource(config))
    (body,) = (node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == model.__name__)
    return {
        field.target.id: " ".join(str(note.value.value).replace("``", '"').split())
        for field, note in zip(body, body[1:], strict=False)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(note, ast.Expr) and isinstance(note.value, ast.Constant)
    }


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="# ", subsequent_indent="# ", break_long_words=False)


def _value(value: Any) -> str:
    """As TOML."""
    return json.dumps(list(value) if isinstance(value, tuple) else value)
