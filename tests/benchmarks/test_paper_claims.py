"""Claims of the paper are counted as a loop over the comparisons counts them, and each word follows from the counts."""

from __future__ import annotations

from pathlib import Path

import attrs
import paper_claims
import pytest
from paper_claims import CLAIMS, Claim, Compared, Tables, apart_unpaired, between, by_perturbation, page, say

from clocs_core.artifacts.reports import PatientSeparation
from clocs_core.contracts.grids import Condition, Published
from clocs_core.grids.distances import DistanceLine
from clocs_core.grids.summary import Difference, Judged, Line, Spread, Summary

PLACE = Condition(method="cmsc", pretraining="ptbxl", downstream="ptbxl", protocol="linear")
EMPTY = Summary((), ())
SCORED = ("linear-4-leads", "linear-12-leads", "transfer-4-leads", "transfer-12-leads", "more-with-less")
SCORED = (*SCORED, "perturbations", "effect-of-dimension", "effect-of-labels")


def judged(value: float, half: float = 0.01) -> Judged:
    return Judged(value, value - half, value + half, 0.0, 1.0)


def line(condition: Condition, score: float, printed: float | None = None, gain: float | None = None) -> Line:
    return Line(
        condition=condition,
        spread=None,
        interval=judged(score),
        gain=None if gain is None else judged(gain),
        gain_value=gain,
        printed=None if printed is None else Published(printed, 0.01, ""),
        done=1,
        wanted=1,
    )


def tables(**scores: Summary) -> Tables:
    named = {name.replace("_", "-"): summary for name, summary in scores.items()}
    return Tables({name: named.get(name, EMPTY) for name in SCORED}, {"patient-distances": ()})


def test_a_claim_is_judged_by_counts() -> None:
    claim = Claim("one is above the other", "section 9", lambda _: [])
    above, below = Compared((0.1, 0.05, 0.15), (0.2, -0.1)), Compared((-0.1, -0.15, -0.05))
    untold, missing = Compared((0.1, -0.05, 0.25)), Compared(None, (0.3,))
    said = {
        "Holds": [above, above],
        "Holds in part": [above, untold],
        "Holds here and not there": [above, below, untold],
        "Does not hold": [below, untold],
        "Cannot be told": [untold],
        "Not made": [missing],
    }
    for word, compared in said.items():
        assert say(claim, compared).startswith(f"**{word}**: one is above the other (section 9)")
    assert say(claim, [above, below, untold, missing]).endswith(
        ": above in 1 of 3 comparisons, below in 1, not to be told in 1, not made in 1; in the paper above in 2 of 3."
    )


def test_differences_are_found_in_either_order_and_a_stand_in_for_two_counts_once() -> None:
    """Chapman and PhysioNet 2020 are one place of ours, and two of the paper."""
    lines, differences = [], []
    for stands_for, printed in (("chapman", 0.8), ("physionet2020", 0.6)):
        place = attrs.evolve(PLACE, printed_pretraining=stands_for, printed_downstream=stands_for)
        lines += [line(place, 0.7, printed), line(attrs.evolve(place, method="simclr"), 0.75, 0.65)]
        differences += [Difference(context=place.context, a="simclr", b="cmsc", interval=judged(0.05), repetitions=5)]
    found = tables(linear_4_leads=Summary(tuple(lines), tuple(differences)))
    (one,) = between(found, ["linear-4-leads"], ["cmsc"], ["simclr", "byol"])
    assert one.ours == pytest.approx((-0.05, -0.06, -0.04))
    assert one.outcome == "below"
    assert one.papers == pytest.approx((0.15, -0.05))


def test_perturbations_are_compared_with_the_same_ones() -> None:
    conditions = [
        attrs.evolve(PLACE, method=method, options=(f"perturbations={name}", *more))
        for method, more in (("simclr", ("perturb=one",)), ("cmsc", ()))
        for name in ("gaussian", "flip_x")
    ]
    rows = [one.row for one in conditions]
    value = {frozenset((rows[0], rows[2])): 0.1, frozenset((rows[1], rows[3])): -0.1}  # of the same perturbation
    pairs = [(a, b) for number, a in enumerate(rows) for b in rows[number + 1 :]]
    apart = [
        Difference(context=PLACE.context, a=a, b=b, interval=judged(value.get(frozenset((a, b)), 9.0)), repetitions=5)
        for a, b in pairs
    ]
    summary = Summary(tuple(line(one, 0.7) for one in conditions), tuple(apart))
    found = by_perturbation(tables(perturbations=summary), "perturbations")
    assert [one.outcome for one in found] == ["below", "above"]  # simclr comes first in the differences


def test_scores_of_different_settings_are_compared_as_if_of_different_patients() -> None:
    one, other = line(PLACE, 0.8), line(PLACE, 0.7)
    value, low, high = apart_unpaired(one, other) or (0, 0, 0)
    assert value == pytest.approx(0.1)
    assert (value - low, high - value) == pytest.approx((0.01 * 2**0.5,) * 2)
    assert apart_unpaired(attrs.evolve(one, interval=None), other) is None


def test_a_page_has_ten_sentences_whatever_is_made() -> None:
    text = page(tables(), "python benchmarks/paper_claims.py")
    assert text.count("**Not made**") == len(CLAIMS) == 10
    spread = [Spread(((a, b, c),), 0.0, None, None) for a, b, c in ((0.9, 0.8, 0.7), (0.5, 0.45, 0.4))]
    apart = PatientSeparation(init="cmsc", intra_mean=1, inter_mean=2, separation=0.8)
    lines = tuple(
        DistanceLine(PLACE, name, each, each, each, (apart,))
        for name, each in zip(("cmsc", "simclr"), spread, strict=True)
    )
    every = attrs.evolve(tables(), distances={"patient-distances": lines})
    assert "10. **Holds**: distances between embeddings tell patients apart better" in page(every, "")


def test_quarters_of_labels_and_dimensions_are_found_in_their_tables() -> None:
    few, whole = attrs.evolve(PLACE, label_fraction=0.25), attrs.evolve(PLACE, label_fraction=1.0)
    lines = (line(few, 0.8, gain=0.2), line(attrs.evolve(whole, method="random"), 0.7), line(whole, 0.9, gain=0.2))
    (less,) = paper_claims.fewer_labels(tables(more_with_less=Summary(lines, ())), "more-with-less", 0.25)
    assert (less.outcome, less.ours and round(less.ours[0], 6)) == ("above", 0.1)
    sizes = tuple(line(attrs.evolve(PLACE, embedding_dim=dim), dim / 1000) for dim in (32, 64, 128))
    (wide,) = paper_claims.by_dimension(tables(effect_of_dimension=Summary(sizes, ())), "effect-of-dimension", 128, 32)
    assert wide.ours is not None
    assert wide.ours[0] == pytest.approx(0.096)
    (gain,) = paper_claims.over_random(
        tables(
            transfer_4_leads=Summary((line(few, 0.8, gain=-0.2), line(attrs.evolve(few, method="random"), 1.0)), ())
        ),
        ["transfer-4-leads"],
        ["cmsc"],
    )
    assert gain.outcome == "below"


def test_the_page_of_exports_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An export of nothing: every claim is there, and none is made."""
    from clocs_core.grids.export import CALLS, COLUMNS, PATIENTS, RUNS

    named = (("scores", COLUMNS), ("patients", PATIENTS), ("runs", RUNS), ("calls", CALLS))
    for name, columns in named:
        (tmp_path / f"{name}.csv").write_text(",".join(columns) + "\n")
    asked = Path(paper_claims.__file__).parent / "paper.toml"
    out = tmp_path / "paper" / "claims.md"
    assert paper_claims.main([str(tmp_path), "--asked", str(asked), "--out", str(out)]) == 0
    assert out.read_text().count("**Not made**") == 10
    assert "# What of the paper holds" in capsys.readouterr().out
