"""The page: one file, no network, nothing that a hostile name could run, and an honest first sentence."""

import re
import struct
import zlib
from html.parser import HTMLParser

import attrs
import pytest

from clocs_core.artifacts.metrics import EpochRow
from clocs_core.artifacts.reports import Report, SplitSummary
from clocs_core.contracts.events import Picture
from clocs_core.contracts.records import DropReport
from clocs_core.contracts.scores import Comparison, Score
from clocs_core.report.page import render

EVIL = "<script>alert('x')</script>\" onload=\"y"
VOID = {"meta", "img", "link", "br", "hr", "input"}


def png(width: int, height: int) -> bytes:
    """The smallest grey PNG of a size, put together by hand."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + b"\x80" * width for _ in range(height)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


class Reader(HTMLParser):
    """Collects tags, addresses and the text of each section, and checks that tags are closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.attributes: list[str] = []
        self.ids: set[str] = set()
        self.text: dict[str, str] = {}
        self._open: list[tuple[str, str]] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append(tag)
        self.attributes += found
        self.addresses += [found[name] for name in ("src", "href", "action", "data") if name in found]
        if "id" in found:
            assert found["id"] not in self.ids
            self.ids.add(found["id"])
        if tag not in VOID:
            self._open.append((tag, found.get("id", "")))

    def handle_endtag(self, tag):
        assert self._open.pop()[0] == tag
        if tag in ("td", "th"):
            self.handle_data(" ")

    def handle_data(self, data):
        for _, name in self._open:
            if name:
                self.text[name] = self.text.get(name, "") + data


def report(**changes) -> Report:
    whole = Report(
        method="m",
        dataset="d",
        task="rhythm",
        seed=7,
        settings={"train": {"epochs": 3, "rate": 0.1, "names": ["a"], "root": None, "exact": False}},
        epochs_run=1234,
        best_epoch=2,
        stopped="early stopping",
        split=SplitSummary(
            "c0ffee", "60/20/20", 7, {"train": 6000, "test": 2}, {"train": 60, "test": 3}, {"train": 9}, 0, 0
        ),
        environment={"python": "3.11"},
        scores=(
            Score("linear", "m", "d", 1.0, "auroc", "frame", 0.8, 0.75, 0.85),
            Score("prior", "random", "d", 1.0, "auroc", "frame", 0.5, 0.5, 0.5),
        ),
        comparisons=(compared(0.12, 0.08, 0.16),),
        notes=("A note.",),
        drops=DropReport({"flat": 12}, {"flat": ("A1 V2", "A7 II")}),
        form="WFDB",
        seconds={"prepare": 8.21, "pretrain": 65.0, "evaluate": 7380.0},
    )
    return attrs.evolve(whole, **changes)


def compared(difference: float, low: float, high: float) -> Comparison:
    return Comparison("m", "random", "linear", "d", 1.0, "auroc", "frame", difference, low, high)


def row(epoch: int) -> EpochRow:
    return EpochRow(
        epoch=epoch,
        train_loss=1.5,
        validation_loss=float("nan"),
        effective_rank=7.0,
        same_patient=0.9,
        other_patient=0.2,
        margin=0.7,
        loss_over_log_batch=0.4,
        improved=True,
        seconds=1.0,
        instances=1000,
    )


def pictures() -> list[Picture]:
    names = ("loss", "health", "scores", "embedding-by-label", "embedding-by-patient", "traces", "unheard-of")
    return [Picture(name, f"Title of {name}", "What it shows.", png(30, 20)) for name in names]


def words(text: str) -> str:
    return " ".join(text.split())


def test_the_page_is_well_formed_and_asks_nothing_of_the_network():
    """A hospital's machine may have no network; a report must not call home either."""
    page = render(report(), [row(1), row(2)], pictures())
    read = Reader(page)
    assert page.startswith("<!doctype html>")
    assert read.tags.count("h1") == 1
    assert "script" not in read.tags
    assert "link" not in read.tags
    assert read.addresses
    for address in read.addresses:
        assert address.startswith(("data:image/png;base64,", "#"))
        if address.startswith("#"):
            assert address[1:] in read.ids
    assert "http://" not in page
    assert "https://" not in page
    assert "url(" not in page
    assert "@import" not in page


def test_the_page_has_every_section_and_every_picture_in_its_place():
    read = Reader(render(report(), [row(1)], pictures()))
    places = {
        "scores": ["scores"],
        "training": ["loss", "health"],
        "embeddings": ["embedding-by-label", "embedding-by-patient"],
        "signals": ["traces"],
        "more": ["unheard-of"],
    }
    for section, names in places.items():
        for name in names:
            assert f"Title of {name}." in read.text[section]
    assert read.tags.count("img") == 7
    assert {"verdict", "split", "left-out", "settings", "environment"} <= read.ids


def test_pictures_are_shown_at_two_thirds_of_their_dots():
    """At 144 dots per inch a picture shown dot by dot would be half as large again as it was drawn."""
    assert 'width="20"' in render(report(), [], pictures()[:1])


def test_hostile_names_are_text_and_nothing_else():
    """Patient ids, record names, labels, settings and notes come from files that anybody may have written."""
    drops = DropReport({EVIL: 1}, {EVIL: (EVIL,)})
    picture = Picture(EVIL, EVIL, EVIL, png(3, 2))
    score = Score("linear", EVIL, EVIL, 1.0, EVIL, "frame", 0.8, 0.7, 0.9)
    split = SplitSummary(EVIL, EVIL, 0, {EVIL: 1}, {EVIL: 1}, {EVIL: 1}, 0, 0)
    comparison = Comparison(EVIL, EVIL, EVIL, EVIL, 1.0, EVIL, "frame", 0.1, 0.05, 0.2)
    page = render(
        report(
            method=EVIL,
            dataset=EVIL,
            task=EVIL,
            stopped=EVIL,
            form=EVIL,
            settings={EVIL: {EVIL: EVIL, "list": [EVIL]}},
            environment={EVIL: EVIL},
            scores=(score,),
            comparisons=(comparison,),
            notes=(EVIL,),
            drops=drops,
            split=split,
            seconds={EVIL: 1.0},
        ),
        [row(1)],
        [picture],
    )
    read = Reader(page)
    assert "script" not in read.tags
    assert "onload" not in read.attributes
    assert "<script" not in page
    assert EVIL in read.text["left-out"]


@pytest.mark.parametrize(
    ("difference", "low", "high", "outcome", "says"),
    [
        (0.12, 0.08, 0.16, "above", "m is above random by 0.120 [0.080, 0.160]"),
        (-0.12, -0.16, -0.08, "below", "m is below random by 0.120 [0.080, 0.160]"),
        (0.02, -0.03, 0.07, "undecided", "the interval over patients contains 0, so this test cannot tell them apart."),
    ],
)
def test_the_first_sentence_says_what_the_interval_says(difference, low, high, outcome, says):
    """A reader with ten seconds must not go away with a wrong idea."""
    page = render(report(comparisons=(compared(difference, low, high),)), [], [])
    assert says in Reader(page).text["verdict"]
    assert f'class="verdict {outcome}"' in page


def test_the_table_of_differences_has_the_p_of_each_test_and_what_it_is_of():
    page = render(report(comparisons=(attrs.evolve(compared(0.12, -0.08, 0.16), p=0.0123),)), [], [])
    assert '<td class="undecided-text">contains 0</td>\n      <td class="number">0.012</td>' in page
    assert "p is of a permutation test over the same patients, for this seed alone." in page


def test_a_run_without_scores_says_why():
    """Unlabelled data are no failure, but the page must not look as if something were missing by accident."""
    page = render(report(scores=(), comparisons=(), task=None, notes=("No frame has a label.",)), [row(1)], [])
    read = Reader(page)
    assert "There is no score; the notes say why." in read.text["verdict"]
    assert "No frame has a label." in read.text["verdict"]
    assert "scores" not in read.ids


def test_controls_stand_in_the_table_of_scores():
    """A score alone says little: 0.8 beside the class prior's 0.5 says something."""
    text = words(Reader(render(report(), [], [])).text["scores"])
    assert "m 0.800 [0.750, 0.850] auroc frame linear 1" in text
    assert "class prior 0.500 [0.500, 0.500] auroc frame prior 1" in text


def test_a_score_outside_the_scale_has_no_whisker():
    """Metrics need not lie between 0 and 1; a bar outside its box would cover the numbers."""
    outside = Score("linear", "m", "d", 1.0, "gain", "frame", 1.5, -0.5, 2.0)
    undefined = Score("linear", "m", "d", 1.0, "auroc", "frame", float("nan"), float("nan"), float("nan"))
    assert 'class="whisker' not in render(report(scores=(outside, undefined)), [], [])
    assert render(report(), [], []).count('class="whisker') == 2


def test_the_split_the_drops_and_the_settings_are_there():
    """What a reviewer asks for: who was tested, who was left out, and with which settings."""
    text = {name: words(part) for name, part in Reader(render(report(), [row(1)], [])).text.items()}
    assert "train 6,000 9 60" in text["split"]
    assert "test 2 3" in text["split"]
    assert "c0ffee" in text["split"]
    assert "flat 12 A1 V2, A7 II, …" in text["left-out"]
    assert text["settings"] == ('Settings [train] epochs = 3 rate = 0.1 names = ["a"] # root is not set exact = false')
    assert "python 3.11" in text["environment"]
    assert "1 1.500 n/a 7.000" in text["training"]


def test_nothing_dropped_is_said():
    assert "Nothing was dropped." in render(report(drops=DropReport()), [], [])


def test_times_are_in_words():
    page = render(report(), [], [])
    for text in ("8.2 s", "1 min 05 s", "2 h 03 min", "1,234 (early stopping)"):
        assert text in page


def test_value_and_interval_come_first_after_the_weights():
    """The first three columns are what a phone shows."""
    page = render(report(), [], [])
    heads = re.findall(r'<th scope="col"[^>]*>([^<]*)</th>', page)
    assert heads[:3] == ["weights", "value", "95 % interval"]
    assert heads[8:13] == ["a", "b", "a - b", "95 % interval", "reading"]


def test_the_command_and_the_date_are_on_the_page():
    page = render(attrs.evolve(report(), command=f"clocs run {EVIL}", date="2026-11-16 07:00 UTC"), [], [])
    assert "2026-11-16 07:00 UTC" in page
    assert "clocs run &lt;script&gt;" in page


def test_components_of_the_loss_are_columns_of_the_table_of_epochs():
    page = render(report(), [attrs.evolve(row(1), components={"pull": 0.125})], [])
    assert "components.pull" in page
    assert "0.125" in page
