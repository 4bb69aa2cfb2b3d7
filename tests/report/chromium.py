"""Drives headless Chromium over its DevTools pipe: opens a page, runs expressions in it and presses keys."""

import base64
import json
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
]
PATIENCE_SECONDS = 60
CODES = {"Tab": 9, "Enter": 13, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowRight": 39, "ArrowDown": 40}
"""Keys that the browser itself does something with know it by these numbers."""


class Chromium:
    """One browser with one page. What the page complains of and asks for is kept for its time."""

    def __init__(self, profile: Path) -> None:
        program = shutil.which("chromium") or shutil.which("chromium-browser")
        assert program, "Chromium is missing, and the report is tested in it: apt-get install chromium"
        # Chromium reads from descriptor 3 and writes to 4, where bash puts our pipes (plain sh knows no
        # descriptor above 9).
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        command = shlex.join([program, *FLAGS, f"--user-data-dir={profile}", "about:blank"])
        self._process = subprocess.Popen(
            ["bash", "-c", f"exec {command} 3<&{theirs_in} 4>&{theirs_out}"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._buffer = b""
        self._sent = 0
        self._session: str | None = None
        self.complaints: list[str] = []
        """Console errors and warnings, uncaught exceptions and violations of the security policy."""
        self.requests: list[str] = []
        """Address of everything the page asked for."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def __enter__(self) -> "Chromium":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._out)
        os.close(self._in)
        self._process.kill()
        self._process.wait()

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Result of one DevTools command."""
        self._sent += 1
        message: dict[str, Any] = {"id": self._sent, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (answer := self._receive()).get("id") != self._sent:
            self._note(answer)
        assert "error" not in answer, f"{method}: {answer['error']}"
        result: dict[str, Any] = answer["result"]
        return result

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            piece = os.read(self._in, 1 << 20)
            assert piece, "Chromium ended"
            self._buffer += piece
        line, self._buffer = self._buffer.split(b"\0", 1)
        event: dict[str, Any] = json.loads(line)
        return event

    def _note(self, event: dict[str, Any]) -> None:
        method, about = event.get("method"), event.get("params", {})
        if method == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
            self.complaints.append(str([a.get("value", a.get("description")) for a in about["args"]]))
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(about["exceptionDetails"].get("exception", {}).get("description", str(about)))
        elif method == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.complaints.append(about["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])

    def open(self, page: Path, fragment: str = "", width: int = 1200, height: int = 900) -> None:
        """Loads a local file afresh and waits until it is complete."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.send("Page.navigate", url="about:blank")
        self.complaints.clear()
        self.requests.clear()
        self.send("Page.navigate", url=page.as_uri() + fragment)
        self.wait(
            lambda: self.run("location.protocol === 'file:' && document.readyState === 'complete'"),
            "the page",
        )

    def run(self, expression: str) -> Any:
        """Value of a JavaScript expression in the page."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, is_so: Callable[[], Any], what: str) -> None:
        """Waits until something is so."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not is_so():
            assert time.monotonic() < end, f"waited {PATIENCE_SECONDS} s in vain for {what}; {self.complaints}"
            time.sleep(0.05)

    def press(self, key: str) -> None:
        """Presses and releases a key by its name, such as ``ArrowRight``."""
        for kind in ("rawKeyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=CODES.get(key, 0))

    def emulate(self, media: str = "", scheme: str = "") -> None:
        """Shows pages for a medium, such as ``print``, and in the ``light`` or ``dark`` scheme; ``""`` is as usual."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.send("Emulation.setEmulatedMedia", media=media, features=features)

    def picture(self, selector: str) -> bytes:
        """A PNG of the first element that the selector finds."""
        box = self.run(
            f"(({{x, y, width, height}}) => ({{x: x + scrollX, y: y + scrollY, width, height, scale: 1}}))"
            f"(document.querySelector({json.dumps(selector)}).getBoundingClientRect())"
        )
        answer = self.send("Page.captureScreenshot", clip=box, captureBeyondViewport=True)
        return base64.b64decode(answer["data"])
