"""Functions that mkdocs calls while it builds the site: they add pages, and mend links that leave docs/."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from options_page import options_page
from outside_links import keep_inside

ROOT = Path(__file__).parents[2]

# Pages that stand elsewhere in the tree, by their path from its root, and where the site has them.
ADOPTED = {
    "README.md": "index.md",  # the front page says the same
    "CHANGELOG.md": "changes.md",
    "plugins/clocs-plugin-ppg/README.md": "ppg.md",
}

_FILE = re.compile(r"^```(\w+) file=(\S+)$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page of options, which no library makes, and the pages that stand outside of docs/."""
    files.append(File.generated(config, "reference/options.md", content=options_page()))
    for source, path in ADOPTED.items():
        if files.get_file_from_path(path) is None:
            text = (ROOT / source).read_text(encoding="utf-8")
            files.append(File.generated(config, path, content=keep_inside(text, ROOT / source, ROOT, ADOPTED)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Show the name of a file above its block, and mend links out of docs/."""
    markdown = _FILE.sub(r'```\1 title="\2"', markdown)
    if page.file.abs_src_path is None or page.file.generated_by is not None:
        return markdown
    return keep_inside(markdown, Path(page.file.abs_src_path), ROOT, ADOPTED)
