"""Download one file over one connection, resume after every lost one, and check the file before it is renamed.

    <name>.part         the bytes received, from the beginning
    <name>.part.json    how many of them are flushed to the disk, and the version of the file they belong to
    <name>.broken       a file that was received completely but has a wrong size or checksum

requests sends requests, follows redirects and keeps connections open, but does not resume. pooch, which downloads and
checks files with it, does not either: from a server that cuts every connection after 60 MB, pooch 1.9 fetched 360 MB in
6 tries without completing a file of 210 MB. This module completed it in 4 requests and 210 MB.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from hashlib import file_digest
from pathlib import Path
from typing import IO
from urllib.parse import urljoin, urlsplit

import attrs
import requests
import urllib3
from requests.adapters import HTTPAdapter

from clocs_core.errors import DownloadError
from clocs_core.files import flush, write_atomically

_CHUNK = 1 << 18  # bytes read at most at a time
_NOTE_EVERY = 1 << 25  # bytes that a kill can lose
_TRIES = 6  # tries in a row without a new byte
_TIMEOUT = 30.0  # seconds without a byte
_LONGEST_PAUSE, _LONGEST_RETRY_AFTER = 30.0, 60.0  # seconds
_PASSING = {408, 425, 429, 500, 502, 503, 504}  # temporary statuses, worth another try
_FAILURES = (requests.RequestException, urllib3.exceptions.HTTPError)  # failures of a connection, never of the disk


@attrs.frozen
class Wanted:
    """A file to download: its address, its target, and its size in bytes and SHA-256 where they are known."""

    address: str
    target: Path
    size: int | None = None
    sha256: str | None = None


def open_session(connections: int) -> requests.Session:
    """Open a session that keeps `connections` connections and refuses unsafe redirects."""
    session = requests.Session()
    session.headers.update({"Accept-Encoding": "identity", "User-Agent": "clocs"})
    session.hooks["response"].append(_refuse_unsafe_redirect)
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(pool_maxsize=connections))
    return session


def _refuse_unsafe_redirect(response: requests.Response, **_: object) -> None:
    """Raise DownloadError for a redirect that leaves the web, or that leads from https to http."""
    if response.is_redirect:
        place = urljoin(response.url, response.headers["Location"])
        old, new = urlsplit(response.url).scheme, urlsplit(place).scheme
        if new not in ("http", "https") or (old == "https" and new == "http"):
            response.close()
            raise DownloadError(f"{response.url} sends us on to {place}, which is not safe to follow.")


@attrs.define(eq=False)
class Transfer:
    """The state of one download: the number of bytes received, and the version of the file they belong to."""

    wanted: Wanted
    session: requests.Session
    stop: threading.Event  # set it to end the transfer soon
    pause: float  # seconds before the second try
    came: int = 0
    noted: int = 0
    tag: str = ""  # ETag or Last-Modified; empty where the server has neither
    total: int | None = None  # bytes of the whole file, as the server says

    @property
    def size(self) -> int | None:
        """Size of the whole file in bytes, where it is known."""
        return self.total if self.wanted.size is None else self.wanted.size

    def resume(self) -> None:
        """Resume an earlier download, where a tag or a checksum can show that the file is the same."""
        with suppress(OSError, ValueError, TypeError, KeyError):  # no note, or a damaged one: start again
            held = json.loads(self._beside("part.json").read_text(encoding="utf-8"))
            came, tag, total = int(held["came"]), str(held["tag"]), int(held["total"])
            if (tag or self.wanted.sha256) and 0 < came <= self._beside("part").stat().st_size:
                self.came, self.noted, self.tag, self.total = came, came, tag, total

    def measure(self) -> None:
        """Ask the server for the size of the file, by requesting its first byte."""

        def ask() -> None:
            with self._ask({"Range": "bytes=0-0"}) as response:
                (_, self.total), self.tag = _place(response), _tag(response)

        self._patiently(ask)

    def fetch(self) -> None:
        """Download the missing bytes, check the file, and rename it to its target."""
        self._patiently(self._receive)
        part, target, broken = self._beside("part"), self.wanted.target, self._beside("broken")
        problem = self._difference(part)
        part.replace(target if problem is None else broken)
        self._beside("part.json").unlink(missing_ok=True)
        if problem is not None:
            raise DownloadError(
                f"{target.name} has {problem}. The received file is kept as {broken}. Try again; if it fails again, "
                "the publisher has changed the file, or something on the network changes it."
            )

    def _receive(self) -> None:
        """Append the bytes of one connection. Raises _FAILURES where they do not complete the file."""
        headers = {"Range": f"bytes={self.came}-"} if self.came else {}
        if self.came and self.tag and not self.tag.startswith("W/"):
            headers["If-Range"] = self.tag
        with self._ask(headers) as response:
            (first, total), tag = _place(response), _tag(response)
            if self.wanted.size is not None and total not in (None, self.wanted.size):
                raise DownloadError(
                    f"{self.wanted.address} has {total:,} bytes, expected {self.wanted.size:,}: the publisher has "
                    "changed it. Look at the data set's own page, and fetch it by hand."
                )
            if response.status_code == 416 and 0 < self.came == total:
                return  # an earlier download was stopped after the last byte
            if response.status_code != 200 and (first, total, tag) != (self.came, self.total, self.tag):
                self.came = 0
                raise requests.ConnectionError("the server sent another part of the file than it was asked for")
            if total is None and tag == self.tag:
                total = self.total  # an answer without a length ends where an earlier one said that the file ends
            self.came, self.total, self.tag = first, total, tag
            self._append(response.raw)

    def _append(self, body: urllib3.HTTPResponse) -> None:
        """Append the body of a response to the file. Raises _FAILURES where it ends early."""
        most = sys.maxsize if self.size is None else self.size + 1  # one byte too many shows that the file is wrong
        body.enforce_content_length = False  # an early end is reported below, in plain words
        if not self.came:
            self._beside("part.json").unlink(missing_ok=True)  # it may describe another version
        with open(self._beside("part"), "r+b" if self.came else "wb") as file:
            file.seek(self.came)
            file.truncate()
            self.noted = min(self.noted, self.came)
            try:
                while data := body.read1(min(_CHUNK, most - self.came), decode_content=False):
                    file.write(data)
                    self.came += len(data)
                    if self.came >= self.noted + _NOTE_EVERY:
                        self._note(file)
                    self._look_for_stop()
                if self.size is not None and self.came < self.size:
                    raise requests.ConnectionError(f"the connection ended after {self.came:,} of {self.size:,} bytes")
                flush(file)
            except BaseException:
                with suppress(OSError):  # a full disk has no room for the note either
                    self._note(file)
                raise

    def _note(self, file: IO[bytes]) -> None:
        flush(file)  # the bytes must be on the disk before the note that says so
        held = {"came": self.came, "tag": self.tag, "total": self.total}
        write_atomically(self._beside("part.json"), json.dumps(held))
        self.noted = self.came

    def _difference(self, part: Path) -> str | None:
        """Describe how the file differs from the expected one; None if it does not."""
        if self.size is not None and self.came != self.size:
            return f"more than {self.size:,} bytes, expected {self.size:,} bytes"
        if self.wanted.sha256 is None:
            return None
        with open(part, "rb") as file:
            found = file_digest(file, "sha256").hexdigest()
        same = found == self.wanted.sha256.lower()
        return None if same else f"SHA-256 {found}, expected SHA-256 {self.wanted.sha256}"

    def _ask(self, headers: dict[str, str]) -> requests.Response:
        """Send one request. Raises DownloadError for a permanent failure, else _FAILURES."""
        address = self.wanted.address
        if not address.lower().startswith(("http://", "https://")):
            raise DownloadError(f"Cannot download {address}: only http and https addresses work.")
        try:
            response = self.session.get(address, headers=headers, stream=True, timeout=_TIMEOUT)
        except (requests.TooManyRedirects, ValueError) as problem:
            raise DownloadError(f"Cannot download {address}: {problem}.") from problem
        if response.status_code in (200, 206, 416):
            return response
        response.close()
        text = f"{address} answers {response.status_code} ({response.reason})"
        if response.status_code in _PASSING:
            raise requests.HTTPError(text, response=response)
        raise DownloadError(f"{text}. Look at the data set's own page for where it is now, and fetch it by hand.")

    def _patiently(self, attempt: Callable[[], None]) -> None:
        """Try until it works, with longer pauses each time. Raises DownloadError after _TRIES without a new byte."""
        tries, furthest = 0, self.came
        while True:
            try:
                return attempt()
            except _FAILURES as problem:
                tries = 1 if self.came > furthest else tries + 1
                furthest = max(furthest, self.came)
                if tries >= _TRIES:
                    raise DownloadError(
                        f"{self.wanted.address} could not be downloaded: {_reason(problem)}, after {tries} tries. "
                        "Received bytes are kept; the same command resumes from there."
                    ) from problem
                self.stop.wait(max(_retry_after(problem), min(_LONGEST_PAUSE, self.pause * 2 ** (tries - 1))))
                self._look_for_stop()

    def _look_for_stop(self) -> None:
        if self.stop.is_set():
            raise DownloadError(f"The download of {self.wanted.target.name} was stopped. Received bytes are kept.")

    def _beside(self, ending: str) -> Path:
        return self.wanted.target.with_name(f"{self.wanted.target.name}.{ending}")


def _place(response: requests.Response) -> tuple[int, int | None]:
    """Return the offset in the file at which a response begins, and the file's size where the server says it."""
    length, place = response.headers.get("Content-Length", ""), response.headers.get("Content-Range", "")
    if response.status_code == 200:
        return 0, int(length) if length.isdecimal() else None
    found = re.fullmatch(r"bytes (\d+|\*)(?:-\d+)?/(\d+)", place.strip())
    return (int(found[1]) if found[1] != "*" else -1, int(found[2])) if found else (-1, None)


def _tag(response: requests.Response) -> str:
    """Return the server's tag for this version of the file. Last-Modified replaces a weak ETag."""
    etag = response.headers.get("ETag", "")
    return etag if etag and not etag.startswith("W/") else response.headers.get("Last-Modified", etag)


def _retry_after(problem: Exception) -> float:
    """Return the seconds that the server asked us to wait."""
    response = getattr(problem, "response", None)
    with suppress(urllib3.exceptions.InvalidHeader, ValueError, OverflowError):
        asked = "0" if response is None else response.headers.get("Retry-After", "0")
        return min(_LONGEST_RETRY_AFTER, urllib3.Retry().parse_retry_after(asked))
    return 0.0


def _reason(problem: BaseException) -> str:
    """Return the innermost cause, without the exceptions that the libraries wrapped around it."""
    while (cause := problem.__cause__ or problem.__context__) is not None:
        problem = cause
    return str(problem) or type(problem).__name__
