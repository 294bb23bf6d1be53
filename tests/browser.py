"""A headless Chromium to look at pages with, driven through a pair of pipes: no driver, no socket, no package.

Chromium reads commands of its DevTools protocol from file descriptor 3 and answers on 4, each a JSON object that ends
in a zero byte, when it is started with --remote-debugging-pipe.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
from base64 import b64decode
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PATIENCE = 30.0  # s until a browser that does not answer is given up

# Which numbers pipes get is chance; this gives them those that Chromium expects, and is replaced by it.
LAUNCH = """
import fcntl, os, sys
read, write = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(read, 3)
os.dup2(write, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""

FLAGS = (
    "--headless",
    "--no-sandbox",  # containers have no user namespaces to build one from
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


def find_chromium() -> str | None:
    """The first browser of this family on the path, or the one that CLOCS_CHROMIUM names."""
    named = os.environ.get("CLOCS_CHROMIUM")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


class Pipes:
    """Commands to a browser and its answers; events that come between them are kept until somebody takes them."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read = write, read
        self._rest = b""
        self._count = 0
        self.events: deque[dict[str, Any]] = deque()

    def ask(self, method: str, session: str | None = None, **params: object) -> dict[str, Any]:
        """Send a command and wait for its answer. Raises RuntimeError where the browser refuses."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._count:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def wait_for(self, method: str) -> dict[str, Any]:
        """The next event of a name; those before it stay."""
        for event in self.events:
            if event.get("method") == method:
                self.events.remove(event)
                return event
        while (event := self._next()).get("method") != method:
            self.events.append(event)
        return event

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            if not select.select([self._read], [], [], PATIENCE)[0]:
                raise RuntimeError(f"the browser has said nothing for {PATIENCE:g} s")
            piece = os.read(self._read, 1 << 20)
            if not piece:
                raise RuntimeError("the browser has closed its end of the pipe")
            self._rest += piece
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)


# What moves for a while, such as a field that grows, has come to rest.
_STILL = """
Promise.all(document.getAnimations().filter(one => one.effect.getComputedTiming().endTime !== Infinity)
  .map(one => one.finished.catch(() => null))).then(() => true)
"""


@attrs.frozen
class Page:
    """A page that is open, at a width and in a colour scheme. What it asked for and complained of is kept."""

    pipes: Pipes
    session: str
    requests: list[str] = attrs.field(factory=list)
    complaints: list[str] = attrs.field(factory=list)

    def ask(self, method: str, **params: object) -> dict[str, Any]:
        """A command of the protocol to this page."""
        answer = self.pipes.ask(method, self.session, **params)
        self._sort_events()
        return answer

    def open(self, url: str) -> None:
        """Go there, and wait until everything is loaded."""
        self.requests.clear()
        self.complaints.clear()
        self.ask("Page.navigate", url=url)
        self.pipes.wait_for("Page.loadEventFired")
        self._sort_events()

    def show(self, width: int, height: int = 900, dark: bool = False) -> None:
        """Lay the page out anew at a width in CSS pixels, in the scheme that a reader prefers."""
        phone = width < 600
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.value(_STILL)

    def value(self, expression: str) -> Any:
        """What an expression of JavaScript is worth in the page, once it is settled if it is a promise."""
        asked = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        answer = self.ask("Runtime.evaluate", **asked)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description", expression))
        return answer["result"].get("value")

    def picture(self) -> bytes:
        """What is seen, as PNG."""
        return b64decode(self.ask("Page.captureScreenshot", format="png")["data"])

    def _sort_events(self) -> None:
        kept = [event for event in self.pipes.events if not self._take(event.get("method", ""), event["params"])]
        self.pipes.events.clear()
        self.pipes.events.extend(kept)

    def _take(self, method: str, params: Mapping[str, Any]) -> bool:
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"].get("text")))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append(" ".join(str(one.get("value")) for one in params["args"]))
        return method != "Page.loadEventFired"


@contextmanager
def chromium(program: str, profile: Path) -> Iterator[Page]:
    """A browser with one empty page, which ends with the block. `profile`: a folder for what it writes."""
    (its_end, ours), (answers, its_answers) = os.pipe(), os.pipe()
    words = [sys.executable, "-c", LAUNCH, str(its_end), str(its_answers), program, *FLAGS]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([*words, f"--user-data-dir={profile}"], pass_fds=(its_end, its_answers), **quiet)
    os.close(its_end)
    os.close(its_answers)
    try:
        pipes = Pipes(ours, answers)
        yield _first_page(pipes)
        pipes.ask("Browser.close")
        process.wait(PATIENCE)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(answers)


def _first_page(pipes: Pipes) -> Page:
    target = pipes.ask("Target.createTarget", url="about:blank")["targetId"]
    session = pipes.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    page = Page(pipes, session)
    for domain in ("Page", "Network", "Log", "Runtime"):
        page.ask(f"{domain}.enable")
    return page
