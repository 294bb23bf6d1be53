"""A local web server with the faults of real ones: it drops connections, sends wrong data, refuses, changes files."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import attrs


@attrs.define
class Behaviour:
    """The behaviour of one address."""

    body: bytes
    ranges: bool = True
    drop: float = 0.0  # how likely an answer ends early
    drop_after: int | None = None  # bytes of every answer after which the connection is cut
    length: int | None = None  # what it says instead of the length of the whole
    says_length: bool = True
    more: bytes = b""  # sent after the end of a whole answer
    tag: str | None = '"one"'
    failures: list[int] = attrs.field(factory=list)  # statuses of the first answers
    retry_after: str | None = None  # what these say
    minds_versions: bool = True  # sends the whole of a file that is not the version asked for
    redirect: str | None = None
    shift: int = 0  # answers with bytes from another place than asked
    slow: float = 0.0  # seconds per chunk


@attrs.define
class Site:
    """The server: its pages by name, and the requests that it received."""

    pages: dict[str, Behaviour]
    address: str = ""
    asked: list[tuple[str, str | None]] = attrs.field(factory=list)
    served: int = 0  # bytes
    at_once: int = 0
    most_at_once: int = 0
    rng: random.Random = attrs.field(factory=lambda: random.Random(0))
    lock: threading.Lock = attrs.field(factory=threading.Lock)
    hold: threading.Event = attrs.field(factory=threading.Event)

    def url(self, name: str) -> str:
        return f"{self.address}/{name}"


def sums_of(files: Mapping[str, bytes]) -> bytes:
    """Return a list of SHA-256 as publishers write it: a checksum and a path on each line."""
    return "".join(f"{sha256(raw).hexdigest()} {name}\n" for name, raw in files.items()).encode()


@contextmanager
def serve(**pages: Behaviour) -> Iterator[Site]:
    """Serve pages, by name, until the block ends."""
    site = Site(pages)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def end_headers(self) -> None:
            self.send_header("Connection", "close")
            super().end_headers()

        def do_GET(self) -> None:
            with site.lock:
                site.asked.append((self.path, self.headers.get("Range")))
                site.at_once += 1
                site.most_at_once = max(site.most_at_once, site.at_once)
            try:
                answer(self, site)
            except OSError:  # the client has gone
                pass
            finally:
                with site.lock:
                    site.at_once -= 1
                self.close_connection = True

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64  # with the usual 5, a sixth connection waits a second for its second try

        def handle_error(self, *_: object) -> None:
            pass

    server = Server(("127.0.0.1", 0), Handler)
    site.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def answer(handler: BaseHTTPRequestHandler, site: Site) -> None:
    page = site.pages.get(handler.path.lstrip("/"))
    with site.lock:
        failure = page.failures.pop(0) if page is not None and page.failures else None
    if page is None or failure:
        handler.send_response(failure or 404)
        if page is not None and page.retry_after is not None:
            handler.send_header("Retry-After", page.retry_after)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return
    if page.redirect is not None:
        handler.send_response(302)
        handler.send_header("Location", page.redirect)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return
    total = len(page.body) if page.length is None else page.length
    asked = re.fullmatch(r"bytes=(\d+)-(\d*)", handler.headers.get("Range") or "")
    condition = handler.headers.get("If-Range")
    first, end = 0, total
    if asked and page.ranges and (condition in (None, page.tag) or not page.minds_versions):
        first, end = int(asked[1]), min(total, int(asked[2] or total - 1) + 1)
        if first >= total:
            handler.send_response(416)
            handler.send_header("Content-Range", f"bytes */{total}")
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return
        handler.send_response(206)
        handler.send_header("Content-Range", f"bytes {first + page.shift}-{end - 1 + page.shift}/{total}")
    else:
        handler.send_response(200)
    if page.tag is not None:
        handler.send_header("ETag", page.tag)
    if page.says_length:
        handler.send_header("Content-Length", str(end - first))
    handler.end_headers()
    body = page.body[first:end] + (b"" if asked and page.ranges else page.more)
    with site.lock:
        if page.drop_after is not None and len(body) > 1:
            body = body[: page.drop_after]
        elif len(body) > 1 and site.rng.random() < page.drop:
            body = body[: site.rng.randrange(len(body))]
    for start in range(0, len(body), 4096):
        if page.slow:
            site.hold.wait(page.slow)
        handler.wfile.write(body[start : start + 4096])
        with site.lock:
            site.served += len(body[start : start + 4096])
