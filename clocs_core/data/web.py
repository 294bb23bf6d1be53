"""One request to a web server: ranges, redirects, and which failures are worth another try."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from email.message import Message
from http.client import HTTPException, HTTPResponse
from typing import IO, Any
from urllib.parse import urlsplit

import attrs

from clocs_core.errors import DownloadError

TIMEOUT = 30.0  # seconds without a byte
FAILURES = (OSError, HTTPException)  # of a connection; urllib's own are among them
_PASSING = {408, 425, 429, 500, 502, 503, 504}
_CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)")


class Refused(ConnectionError):
    """A server that could not answer now. `wait` is how many seconds it asked for."""

    def __init__(self, text: str, wait: float = 0.0) -> None:
        super().__init__(text)
        self.wait = wait


@attrs.frozen(eq=False)
class Answer:
    """What a server answered. `first` is the place of the first byte of the body in the file."""

    response: HTTPResponse
    partial: bool
    first: int
    total: int | None  # bytes of the whole file
    tag: str  # of this version of the file


def ask(address: str, first: int | None = None, last: int | None = None, tag: str = "") -> Answer:
    """Ask for a file, or for its bytes `first` to `last`, both included, as long as it is the version `tag`.

    Raises DownloadError where another try would bring the same, Refused and FAILURES where it may not.
    """
    if urlsplit(address).scheme not in ("http", "https"):
        raise DownloadError(f"Cannot download {address}: only http and https are.")
    headers = {"Accept-Encoding": "identity", "User-Agent": "clocs"}
    if first is not None:
        headers["Range"] = f"bytes={first}-{'' if last is None else last}"
        if tag and not tag.startswith("W/"):
            headers["If-Range"] = tag
    try:
        response = _opener().open(urllib.request.Request(address, headers=headers), timeout=TIMEOUT)
    except urllib.error.HTTPError as problem:
        return _refusal(problem, address)
    return _answer(response)


def _refusal(problem: urllib.error.HTTPError, address: str) -> Answer:
    if problem.code == 416 and (problem.headers.get("Content-Range") or "").endswith("/0"):
        return Answer(problem, True, 0, 0, _tag(problem.headers))  # type: ignore[arg-type]  # an empty file has no range
    problem.close()
    text = f"{address} answers {problem.code} ({problem.reason})"
    if problem.code in _PASSING or problem.code == 416:
        after = problem.headers.get("Retry-After") or ""
        raise Refused(text, min(60.0, float(after)) if after.isdecimal() else 0.0)
    raise DownloadError(f"{text}. Look at the data set's own page for where it is now, and fetch it by hand.")


def _answer(response: Any) -> Answer:
    headers = response.headers
    length = headers.get("Content-Length") or ""
    if response.status == 206:
        found = _CONTENT_RANGE.fullmatch((headers.get("Content-Range") or "").strip())
        if found is None or found[1] is None:
            raise Refused(f"an answer without a usable Content-Range: {headers.get('Content-Range')!r}")
        return Answer(response, True, int(found[1]), None if found[3] == "*" else int(found[3]), _tag(headers))
    return Answer(response, False, 0, int(length) if length.isdecimal() else None, _tag(headers))


def _tag(headers: Message | Mapping[str, str]) -> str:
    etag = headers.get("ETag") or ""
    return etag if etag and not etag.startswith("W/") else headers.get("Last-Modified") or etag


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects, but from an encrypted address to none that is not."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        old, new = urlsplit(req.full_url).scheme, urlsplit(newurl).scheme
        if new not in ("http", "https") or (old == "https" and new == "http"):
            raise DownloadError(f"{req.full_url} sends us on to {newurl}, which is not safe to follow.")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_Redirects)
