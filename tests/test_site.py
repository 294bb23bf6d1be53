"""The documentation as a site: it builds without a warning, has every public name, and loads nothing from elsewhere."""

import functools
import html
import http.server
import inspect
import re
import sys
import threading
from html.parser import HTMLParser
from pathlib import Path

import attrs
import click
import pytest
from page_looks import looks

import clocs_core
import clocs_core.testing
from clocs_core.cli import build_cli
from clocs_core.contracts import hookspecs, offers
from clocs_core.plugins.host import installed_entry_points
from clocs_core.plugins.session import open_session
from clocs_core.settings import sections as settings
from clocs_core.settings.options import help_of

pytest.importorskip("material", reason="the site needs `pip install 'clocs[docs]'`")

pytestmark = pytest.mark.slow  # the site is built once; 20 s

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def configuration(folder):
    from mkdocs.config import load_config

    return load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site, built once. A warning, such as a link to an anchor that is not there, ends the build."""
    from mkdocs.commands.build import build

    for cls in (settings.TrainSettings, settings.FinetuneSettings):
        attrs.resolve_types(cls)  # as cattrs does where a settings file was read before
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_MKDOCS_2_WARNING", "1")
        config = configuration(tmp_path_factory.mktemp("site"))
        config.plugins.run_event("startup", command="build", dirty=False)
        build(config)
    return Path(config.site_dir)


class Seen(HTMLParser):
    """What a page has: anchors, what it loads, and how often each tag stands in its article."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.loads, self.tags, self.inside = set(), set(), {}, 0
        self.feed(text)

    def handle_starttag(self, tag, pairs):
        given = dict(pairs)
        self.anchors.add(given.get("id"))
        self.loads |= {given["href"]} if tag == "link" and "href" in given else set()
        self.loads |= {given[key] for key in ("src", "srcset", "data", "poster") if given.get(key)}
        self.inside += tag == "article"
        if self.inside:
            self.tags[tag] = self.tags.get(tag, 0) + 1

    def handle_endtag(self, tag):
        self.inside -= tag == "article"


def built_in():
    """What a fresh installation has; another plugin on this machine is on no page."""
    return open_session([point for point in installed_entry_points() if point.dist.name == "clocs"], (), False)


def page(site, name):
    return (site / name / "index.html").read_text(encoding="utf-8")


def article(site, name):
    return text_of(page(site, name).partition("<article")[2].partition("</article>")[0])


def text_of(marked):
    return html.unescape(re.sub(r"<[^>]+>", "", marked))


def sections(site, name):
    """The text below the heading of each public name."""
    parts = re.split(r'<h[23] id="', page(site, name).partition("</article>")[0])[1:]
    return {part.partition('"')[0]: text_of(part.partition(">")[2]) for part in parts}


def squeezed(text):
    """Text without the spaces and line breaks that a listing puts in."""
    return re.sub(r"\s+", "", text)


# ------------------------------------------------------------------------------------------------ made from the code


def test_every_hook_has_a_heading_with_what_its_specification_says(site):
    text = article(site, "reference/hooks")
    names = [name for name in vars(hookspecs) if name.startswith("clocs_")]
    assert {f"{hookspecs.__name__}.{name}" for name in names} <= Seen(page(site, "reference/hooks")).anchors
    for name in names:
        assert getattr(hookspecs, name).__doc__.split(". Called")[0].replace("`", "") in text


def test_every_public_name_has_a_heading_on_one_page(site):
    """An API that is not written down is guessed at."""
    api, offered = (Seen(page(site, f"reference/{name}")).anchors for name in ("api", "offers"))
    for name in (f"clocs_core.{one}" for one in [*clocs_core.__all__, "__version__"]):
        assert (name in api) + (name in offered) == 1, name
    kit = {f"clocs_core.testing.{name}" for name in clocs_core.testing.__all__}
    assert kit <= Seen(page(site, "reference/testing")).anchors


def test_every_public_name_is_told_with_its_docstring_and_its_arguments(site):
    """A heading alone tells nobody how to call it."""
    told = {one: sections(site, f"reference/{one}") for one in ("api", "offers", "testing")}
    public = [(clocs_core, told["api"] | told["offers"]), (clocs_core.testing, told["testing"])]
    for package, found in public:
        for name in package.__all__:
            thing, text = getattr(package, name), found[f"{package.__name__}.{name}"]
            if inspect.isclass(thing) or inspect.isfunction(thing):
                said = inspect.getdoc(thing).partition("\n\n")[0].partition(". ")[0]
                assert squeezed(said.replace("`", "")) in squeezed(text), name
            if inspect.isfunction(thing):
                missing = [one for one in inspect.signature(thing).parameters if not re.search(rf"\b{one}\b", text)]
                assert not missing, f"{name}: {missing}"


def test_every_field_of_an_offer_is_listed_with_its_type(site):
    found = sections(site, "reference/offers")
    public = [getattr(clocs_core, name) for name in clocs_core.__all__]
    records = [one for one in public if inspect.isclass(one) and one.__module__ == offers.__name__]
    assert len(records) >= 14
    for cls in records:
        for field in attrs.fields(cls):
            row = rf"\n\s*{field.name}\s*\n\s*{re.escape(str(field.type))}\s*\n".replace('"', "'")
            assert re.search(row, found[f"clocs_core.{cls.__name__}"]), f"{cls.__name__}.{field.name}"


def commands(group, path="clocs"):
    """Every command with its path. Shares no code with the page."""
    yield path, group
    for name, below in getattr(group, "commands", {}).items():
        yield from commands(below, f"{path} {name}")


def test_every_command_is_there_with_every_flag_and_its_help(site):
    told = dict(
        section.split("¶", 1) for section in re.split(r"\n(?=clocs[\w -]*¶)", article(site, "reference/commands"))[1:]
    )
    for path, command in commands(build_cli(built_in())):
        said = told[path]
        for flag in command.params:
            if isinstance(flag, click.Option) and not flag.hidden:
                assert all(re.search(rf"(?<![\w-]){name}(?![\w-])", said) for name in flag.opts), f"{path} {flag.opts}"
                assert squeezed(flag.help or "") in squeezed(said), f"{path} {flag.opts}"


def test_every_option_of_every_built_in_offer_is_listed(site):
    """In the order of the catalogue: a method and its objective may share a name."""
    told = iter(re.split(r"\n(?=\S+(?: \(\w+\))?¶\n)", article(site, "reference/options"))[1:])
    for shelf in built_in().catalogue.shelves():
        for item in shelf:
            text = next(section for section in told if re.match(rf"{item.offer.name}( \(\w+\))?¶", section))
            for field in attrs.fields(item.offer.options):
                assert re.search(rf"^{field.name}$", text, flags=re.MULTILINE), f"{item.offer.name}: {field.name}"


def test_no_entry_of_the_menu_of_options_is_there_twice(site):
    """The objective and the method `byol` were two entries of one name."""
    names = re.findall(r"^(.+)¶$", article(site, "reference/options"), flags=re.MULTILINE)
    assert {"byol (objective)", "byol (method)", "cmsc"} <= set(names)
    assert len(names) == len(set(names))


def test_every_setting_of_core_is_listed_with_its_help(site):
    text = article(site, "reference/options")
    classes = [cls for name, cls in vars(settings).items() if name.endswith("Settings") and attrs.has(cls)]
    assert len(classes) >= 6
    own = ((name, kind, attrs.fields_dict(cls)[name]) for cls in classes for name, kind in cls.__annotations__.items())
    for name, kind, field in own:
        row = rf"^{name}\n{re.escape(kind)}\n{re.escape(repr(field.default))}\n"
        told = help_of(field).replace("`", "")  # shown in another font
        assert re.search(row + re.escape(told), text, flags=re.MULTILINE), name


# ---------------------------------------------------------------------------------------------------------- the pages


def test_no_page_loads_anything_from_another_server(site):
    """Whoever reads at a hospital may have no way out, and nobody is to be followed around."""
    pages = [*site.rglob("*.html")]
    assert len(pages) > 20
    for one in pages:
        text = one.read_text(encoding="utf-8")
        assert not [place for place in Seen(text).loads if re.match(r"(https?:)?//", place)], one
        assert 'class="mermaid"' not in text  # the theme would fetch the program that draws it
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import )[\"']?(https?:)?//", sheet.read_text(encoding="utf-8")), sheet


@pytest.mark.parametrize("source", sorted(DOCS.glob("*.md")), ids=lambda path: path.name)
def test_a_page_has_the_lists_tables_and_blocks_that_a_forge_shows(source, site):
    """Two readers of Markdown: what is a list for one can be a paragraph for the other."""
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark").enable(["table"])
    wanted = Seen(f"<article>{reader.render(source.read_text(encoding='utf-8'))}</article>").tags
    found = Seen(page(site, "" if source.stem == "index" else source.stem)).tags
    for tag in ("ul", "ol", "li", "table", "tr", "pre", "h1", "h2", "h3", "em", "strong", "img"):
        assert found.get(tag, 0) == wanted.get(tag, 0), tag


def test_the_groups_of_the_site_are_those_of_the_index():
    """Somebody who reads docs/ without the site finds a page in the same place."""
    nav = configuration("unused").nav[1:]
    told = re.split(r"^## ", (DOCS / "index.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    for group, section in zip(nav, told, strict=True):
        ((title, pages),) = group.items()
        assert section.startswith(f"{title}\n")
        listed = re.findall(r"^- \[([^\]]+)\]\(([^)]+)\)", section, flags=re.MULTILINE)
        named = [path for one in pages for path in one.values()]
        here = {path for path in named if (DOCS / path).exists() and not path.startswith("reference/")}
        assert {path for _, path in listed if not path.startswith("../")} == here


def test_the_navigation_has_every_page_and_every_title_once():
    """A page that stands twice looks like two pages."""
    groups = [one for group in configuration("unused").nav for one in group.values()]
    entries = [pair for group in groups if isinstance(group, list) for one in group for pair in one.items()]
    for column in zip(*entries, strict=True):
        assert sorted(set(column)) == sorted(column)


# ---------------------------------------------------------------------------------------------------------- the links


@pytest.fixture
def keep_inside(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "site"))
    yield __import__("outside_links").keep_inside
    sys.modules.pop("outside_links")


@pytest.mark.parametrize(
    ("page", "link", "mended"),
    [
        ("docs/a.md", "[x](b.md#c)", "[x](b.md#c)"),
        ("docs/a.md", "[x](#c)", "[x](#c)"),
        ("docs/a.md", "[x](https://a.example/b)", "[x](https://a.example/b)"),
        ("docs/a.md", "[x](../CHANGELOG.md#d)", "[x](changes.md#d)"),
        ("docs/a.md", "[how](../clocs_core/files.py)", "how (`clocs_core/files.py`)"),
        ("docs/a.md", "![x](pictures/p.png)", "![x](pictures/p.png)"),
        ("CHANGELOG.md", "[x](docs/a.md)", "[x](a.md)"),
        ("CHANGELOG.md", "[x](LICENSE)", "x (`LICENSE`)"),
    ],
)
def test_a_link_out_of_the_docs_becomes_one_that_the_site_has_or_a_name(page, link, mended, keep_inside, tmp_path):
    """On a forge the link is right as it stands, so the page keeps it."""
    assert keep_inside(link, tmp_path / page, tmp_path, {"CHANGELOG.md": "changes.md"}) == mended


@pytest.fixture
def served(site):
    """The site at an address of this machine, as a forge serves it: a page of a folder is its index.html."""
    handler = functools.partial(QuietHandler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_about):
        """Say nothing."""


@pytest.mark.parametrize(
    "path", ["/", "/results/", "/reference/api/", "/reference/commands/", "/reference/options/", "/reference/hooks/"]
)
def test_a_page_of_the_site_is_readable_everywhere(served, path, chromium):
    """On a phone and in the dark, with wide tables; and no request leaves for another host."""
    assert looks(chromium, served + path, own=(served, "blob:")) == {}
