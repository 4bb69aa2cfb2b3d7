"""Makes the picture of the README: ``python -m tests.report.picture data/report.html`` writes the report's head."""

import base64
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.report.chromium import Chromium

PICTURE = Path(__file__).parents[2] / ".github" / "report.png"
WIDTH, HEIGHT = 960, 1000


def write_picture(report: Path) -> None:
    """Writes what a window of ``WIDTH`` by ``HEIGHT`` pixels first shows."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as profile, Chromium(Path(profile)) as browser:
        browser.send("Emulation.setScrollbarsHidden", hidden=True)
        browser.open(report.resolve(), width=WIDTH, height=HEIGHT)
        PICTURE.parent.mkdir(exist_ok=True)
        PICTURE.write_bytes(base64.b64decode(browser.send("Page.captureScreenshot")["data"]))


if __name__ == "__main__":
    write_picture(Path(sys.argv[1]))
