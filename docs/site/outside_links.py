"""Links from a page to files outside of docs/: right on a forge, they lead nowhere on the site."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

__all__ = ["keep_inside"]

_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>[^)\s#:]+)(?P<anchor>#[^)\s]*)?\)")


def keep_inside(markdown: str, page: Path, root: Path, adopted: Mapping[str, str]) -> str:
    """The page with links that work on the site.

    A file that the site has adopted is linked to where the site has it; any other is named instead of linked to.
    adopted: by path from the root, the page of the site.
    """
    inside = root / "docs"
    home = page if page.is_relative_to(inside) else inside / adopted[page.relative_to(root).as_posix()]

    def mend(link: re.Match[str]) -> str:
        target = Path(os.path.normpath(page.parent / link["target"]))
        place = target.relative_to(root).as_posix() if target.is_relative_to(root) else link["target"]
        if target.is_relative_to(inside):
            there = target
        elif place in adopted:
            there = inside / adopted[place]
        else:
            return f"{link['text']} (`{place}`)"
        return f"[{link['text']}]({os.path.relpath(there, home.parent)}{link['anchor'] or ''})"

    return _LINK.sub(mend, markdown)
