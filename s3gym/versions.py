"""What a result may depend on beside its inputs: the versions of the package, of Python and of libraries."""

import platform
from importlib.metadata import PackageNotFoundError, version

from s3gym import __version__

LIBRARIES = ("accelerate", "chess", "duckdb", "litellm", "numpy", "peft", "prefect", "pyarrow", "torch", "transformers")


def versions() -> dict[str, str]:
    """By name; a library that is not installed is left out."""
    found = {"s3gym": __version__, "python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
