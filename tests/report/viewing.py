"""The trajectory viewer as a reader uses it: links, choices, keys, and what stands where."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.report.chromium import Chromium


class Viewer:
    """The viewer of a page opened in a browser."""

    def __init__(self, browser: Chromium) -> None:
        self.browser = browser

    def open(self, page: Path, fragment: str = "", width: int = 1200) -> None:
        """Opens the page, at a step if the fragment says so, and waits until it is shown."""
        self.browser.open(page, fragment, width)
        self.settle()

    def settle(self) -> None:
        """Waits until what was asked for is shown."""
        asked = "document.querySelector('[data-part=stage]').getAttribute('aria-busy')"
        self.browser.wait(lambda: self.browser.run(asked) == "false", "the step")

    def text(self, part: str) -> str:
        """What a part says."""
        return str(self._of(part, "textContent"))

    def is_hidden(self, part: str) -> bool:
        """Whether a part is left out."""
        return bool(self._of(part, "hidden"))

    def _of(self, part: str, attribute: str) -> Any:
        return self.browser.run(f"document.querySelector('[data-part={part}]').{attribute}")

    def facts(self, part: str) -> dict[str, str]:
        """Names and values of a list of facts."""
        return dict(
            self.browser.run(
                f"[...document.querySelectorAll('[data-part={part}] > div')]"
                ".map((fact) => [...fact.children].map((item) => item.textContent))"
            )
        )

    def choose(self, name: str, value: str) -> None:
        """Chooses an option as a reader would."""
        self.browser.run(
            f"(() => {{ const field = document.querySelector('#viewer select[name={name}]');"
            f"field.value = {json.dumps(value)}; field.dispatchEvent(new Event('change')); }})()"
        )
        self.settle()

    def chosen(self, name: str) -> str:
        """The option chosen."""
        return str(self.browser.run(f"document.querySelector('#viewer select[name={name}]').value"))

    def options(self, name: str) -> list[str]:
        """What there is to choose from."""
        return list(
            self.browser.run(f"[...document.querySelectorAll('#viewer select[name={name}] option')].map((o) => o.text)")
        )

    def press(self, key: str, times: int = 1) -> None:
        """Presses a key, and waits for what comes of it."""
        for _ in range(times):
            self.browser.press(key)
        self.settle()

    def press_button(self, part: str) -> None:
        """Presses a button with the pointer."""
        self.browser.run(f"document.querySelector('[data-part={part}]').click()")
        self.settle()

    def wait_for_address(self, fragment: str) -> None:
        """Waits until the address links to what is shown."""
        self.browser.wait(lambda: self.browser.run("location.hash") == fragment, fragment)


def link(episode: str, step: int) -> str:
    """The fragment that opens an episode at a step, counted from 1."""
    unescaped = "!'()*~"  # by encodeURIComponent
    return f"#episode={quote(episode, safe=unescaped)}&step={step}"
