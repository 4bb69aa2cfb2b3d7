"""Who holds a data folder: what a lock says of its owner, and whether that can be relied on.

The operating system gives a lock back when its owner ends, however that ends. Only on a file system that machines
share may another machine's lock not be seen; there what the file says of its owner counts.
"""

import json
import os
import socket
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

_SHARED = ("9p", "afs", "beegfs", "ceph", "cifs", "fuse.sshfs", "glusterfs", "gpfs", "lustre", "nfs", "smb", "virtiofs")
"""Beginnings of the names of file systems that several machines may have at once."""
_MOUNTS = Path("/proc/self/mounts")


@dataclass(frozen=True, slots=True)
class Owner:
    """What a lock file says."""

    host: str
    pid: int
    command: str
    """The program and its command, without options: those are nobody's business."""
    since: str
    """UTC, ISO 8601."""

    def __str__(self) -> str:
        return f"`{self.command}` on {self.host} since {self.since}"

    @property
    def text(self) -> str:
        """For the lock file."""
        return json.dumps(asdict(self))

    @property
    def is_here(self) -> bool:
        """Whether it is, or was, a process of this machine."""
        return self.host == socket.gethostname()


def this_process() -> Owner:
    """It, as an owner from now on."""
    words = [Path(sys.argv[0]).name, *(word for word in sys.argv[1:2] if not word.startswith("-"))]
    return Owner(socket.gethostname(), os.getpid(), " ".join(words), f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}")


def owner_in(text: str) -> Owner | None:
    """The owner that a lock file names; None where it names none."""
    try:
        said = json.loads(text)
        return Owner(**{name: said[name] for name in Owner.__slots__})
    except (ValueError, KeyError, TypeError):
        return None


def shared_file_system(path: Path) -> str | None:
    """Name of the file system that ``path`` is on, where other machines may have it too. Needs /proc (Linux)."""
    try:
        mounts = [line.split()[1:3] for line in _MOUNTS.read_text(encoding="utf-8").splitlines()]
    except OSError:
        return None
    here = path.resolve()
    above = [(place, kind) for place, kind in mounts if here.is_relative_to(place.replace("\\040", " "))]
    kind = max(above, key=lambda found: len(found[0]), default=("/", ""))[1]
    return kind if kind.startswith(_SHARED) else None
