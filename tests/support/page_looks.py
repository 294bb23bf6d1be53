"""Find visible faults of a page. Each function returns a list that is empty where there is no fault."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

import attrs

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page

DESK, PHONE = 1280, 390  # CSS pixels
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
READABLE = 4.5  # WCAG 2.2, 1.4.3: contrast of text against what is behind it

_PICTURES = """
[...document.images].filter(image => {
  const box = image.getBoundingClientRect(), wide = document.documentElement.clientWidth;
  const outside = image.closest('.scroll') === null && (box.left < 0 || box.right > wide + 0.5);
  return !image.naturalWidth || box.width < 1 || box.height < 1 || outside;
}).map(image => image.alt || image.src.slice(0, 60))
"""

_OVERFLOW = """
(() => {
  const wide = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= wide) return [];
  const own = one => ["auto", "scroll"].includes(getComputedStyle(one).overflowX);
  const scrolls = one => one && (own(one) || scrolls(one.parentElement));
  const over = [...document.body.querySelectorAll('*')].filter(
    one => one.getBoundingClientRect().right > wide + 0.5 && !scrolls(one)
  );
  return [`the page is ${document.documentElement.scrollWidth} px wide`,
          ...over.slice(0, 5).map(one => `${one.tagName} ${one.className}: ${one.textContent.trim().slice(0, 40)}`)];
})()
"""

_CUT = """
[...document.querySelectorAll('table, pre')].filter(one => {
  for (let box = one; box && box !== document.body; box = box.parentElement) {
    const style = getComputedStyle(box).overflowX, inner = box.scrollWidth > box.clientWidth + 1;
    if (inner && (style === 'hidden' || style === 'clip')) return true;
    if (style === 'auto' || style === 'scroll') return box.getBoundingClientRect().width < 100;
  }
  return false;
}).map(one => one.textContent.trim().slice(0, 40))
"""

_FAINT = """
(least => {
  const parts = colour => {
    const found = colour.match(/^rgba?\\(([^)]+)\\)$/);
    if (!found) throw new Error('no colour that is known here: ' + colour);
    const [r, g, b, a = 1] = found[1].split(/[\\s,/]+/).map(Number);
    return [r, g, b, a];
  };
  const over = (top, below) => [0, 1, 2].map(n => top[n] * top[3] + below[n] * (1 - top[3])).concat(1);
  const behind = one => {
    const layers = [];
    for (let box = one; box; box = box.parentElement) layers.push(parts(getComputedStyle(box).backgroundColor));
    const dark = matchMedia('(prefers-color-scheme: dark)').matches;
    return layers.reverse().reduce((below, top) => over(top, below), dark ? [18, 18, 18, 1] : [255, 255, 255, 1]);
  };
  const light = colour => colour.slice(0, 3).map(c => c / 255).map(
    c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4
  ).reduce((sum, c, n) => sum + c * [0.2126, 0.7152, 0.0722][n], 0);
  const contrast = one => {
    const ground = behind(one), ink = over(parts(getComputedStyle(one).color), ground);
    const [a, b] = [light(ink), light(ground)].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  };
  const own = one => [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim());
  return [...document.body.querySelectorAll('*')]
    .filter(one => own(one) && one.getClientRects().length && !['SCRIPT', 'STYLE', 'NOSCRIPT'].includes(one.tagName))
    .map(one => [contrast(one), one])
    .filter(([found]) => found < least)
    .map(([found, one]) => `${found.toFixed(2)}: ${one.tagName} ${one.textContent.trim().slice(0, 40)}`);
})
"""


# What moves for a while, such as a field that grows, has come to rest.
_STILL = """
Promise.all(document.getAnimations().filter(one => one.effect.getComputedTiming().endTime !== Infinity)
  .map(one => one.finished.catch(() => null))).then(() => true)
"""


@attrs.frozen
class Visit:
    """An open page, with the addresses that it requested and the errors and warnings of its console."""

    page: Page
    requests: list[str] = attrs.field(factory=list)
    complaints: list[str] = attrs.field(factory=list)


@contextmanager
def visit(browser: Browser, url: str, width: int = DESK) -> Iterator[Visit]:
    """Open a page at a width, in a new profile, and wait until everything is loaded."""

    def hear(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert"):
            seen.complaints.append(message.text)

    with browser.new_context(viewport={"width": width, "height": 900}, is_mobile=width < 600) as context:
        seen = Visit(context.new_page())
        seen.page.on("request", lambda request: seen.requests.append(request.url))
        seen.page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        seen.page.on("console", hear)
        seen.page.goto(url)
        yield seen


def unseen_pictures(page: Page) -> list[str]:
    """List pictures that did not load, have no size or exceed the page."""
    return list(page.evaluate(_PICTURES))


def overflow(page: Page) -> list[str]:
    """List the elements that make the page scroll sideways."""
    return list(page.evaluate(_OVERFLOW))


def cut_tables(page: Page) -> list[str]:
    """List tables and listings that are cut off, or in a box too narrow to read."""
    return list(page.evaluate(_CUT))


def faint_texts(page: Page, least: float = READABLE) -> list[str]:
    """List texts with too little contrast to their background, and the contrast."""
    return list(page.evaluate(_FAINT, least))


def requests_outside(seen: Visit, own: tuple[str, ...] = ()) -> list[str]:
    """List requests to addresses outside the page and the files beside it. own: prefix of its own addresses."""
    return [url for url in seen.requests if not url.startswith(("file:", "data:", "about:", *own))]


def looks(browser: Browser, url: str, own: tuple[str, ...] = ()) -> dict[str, list[str]]:
    """Check all of the above for a page, at desktop and phone width, in light and dark mode; return the faults."""
    found: dict[str, list[str]] = {}
    for width in (DESK, PHONE):
        with visit(browser, url, width) as seen:
            for scheme in SCHEMES:
                seen.page.emulate_media(color_scheme=scheme)
                seen.page.evaluate(_STILL)
                for look in (unseen_pictures, overflow, cut_tables, faint_texts):
                    found[f"{look.__name__} at {width} px, {scheme}"] = look(seen.page)
        found[f"requests at {width} px"] = requests_outside(seen, own)
        found[f"console at {width} px"] = seen.complaints
    return {name: wrong for name, wrong in found.items() if wrong}
