"""Claims of the paper are counted as a loop over the comparisons counts them, and each word follows from the counts."""

from __future__ import annotations

import math
from collections import Counter
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
        done=5,
        wanted=5,
    )


def tables(**scores: Summary) -> Tables:
    named = {name.replace("_", "-"): summary for name, summary in scores.items()}
    return Tables({name: named.get(name, EMPTY) for name in SCORED}, {"patient-distances": ()})


def test_a_claim_is_judged_by_counts() -> None:
    """Of 40 comparisons, three above are no more than chance makes, and four are."""
    claim = Claim("one is above the other", "section 9", lambda _: [])
    above, below = Compared((0.1, 0.05, 0.15), 5, (0.2, -0.1)), Compared((-0.1, -0.15, -0.05), 5)
    untold, missing = Compared((0.1, -0.05, 0.25), 5), Compared(None, 0, (0.3,))
    single = Compared((0.1, 0.05, 0.15), 1)
    cases = [
        ("Holds", [above]),
        ("Holds", [above, above, missing]),
        ("Holds in part", [above] * 4 + [untold] * 36),
        ("Cannot be told", [above] * 3 + [untold] * 37),
        ("Holds here and not there", [above] * 4 + [below] * 4 + [untold] * 32),
        ("Holds in part", [above] * 4 + [below] * 3 + [untold] * 33),
        ("Does not hold", [below] * 4 + [untold] * 36),
        ("Cannot be told", [below] * 3 + [untold] * 37),
        ("Cannot be told", [above, untold]),
        ("Cannot be told", [untold]),
        ("Cannot be told", [single] * 50),
        ("Not made", [missing]),
    ]
    for word, compared in cases:
        assert say(claim, compared).startswith(f"**{word}**: one is above the other (section 9)")
    assert say(claim, [above, below, untold, single, missing]).endswith(
        ": above in 1 of 3 comparisons, below in 1, not told apart in 1, of one seed alone in 1, not made in 1; "
        "in the paper, above in 1 of 2."  # of the comparisons that are made here
    )


def test_what_a_claim_names_together_is_counted_apart() -> None:
    """It may hold for one method and not for another. The paper counts where ours is made alone."""
    ones = [
        Compared((0.2, 0.1, 0.3), 5, (0.1,), "a - c"),
        Compared((0.1, -0.1, 0.3), 5, (0.1,), "b - c"),
        Compared(None, papers=(-0.1,), who="b - c"),
    ]
    claim = Claim("a and b are above c", "section 9", lambda tables: ones)
    by_pair = paper_claims._counts_by_pair([(claim, ones)])
    assert by_pair.rows == (
        ("1", "a - c", "1", "0", "0", "0", "0", "+0.200"),
        ("1", "b - c", "0", "0", "1", "0", "1", "+0.100"),
    )
    said = say(claim, ones)
    assert "not told apart in 1, +0.200 [+0.100, +0.300] and +0.100 [-0.100, +0.300], not made in 1" in said
    assert said.endswith("; in the paper, above in 2 of 2.")


def test_chance_is_counted_as_a_binomial_is() -> None:
    """As many above, of n with a chance of one in forty each, as come less than once in forty times."""
    for judged in (1, 2, 9, 40, 396):
        chance = [math.comb(judged, k) * 0.025**k * 0.975 ** (judged - k) for k in range(judged + 1)]
        few = next(k for k in range(judged + 1) if sum(chance[k:]) <= 0.025 + 1e-12)
        for above in (few - 1, few):
            word = paper_claims._word(Counter({"above": above, "open": judged - above}), judged)
            assert (word in ("Holds", "Holds in part")) == (above == few), (judged, above)


def test_fine_tuning_on_the_recordings_of_the_pre_training_does_not_count() -> None:
    """PTB-XL stands in for both sets of a transfer: that is none."""
    lines = []
    for downstream in ("ptbxl", "cardiology"):
        place = attrs.evolve(PLACE, downstream=downstream, protocol="finetune")
        lines += [line(place, 0.8, gain=0.1), line(attrs.evolve(place, method="random"), 0.7)]
    found = tables(transfer_4_leads=Summary(tuple(lines), ()))
    assert len(paper_claims.over_random(found, ["transfer-4-leads"], ["cmsc"])) == 1


def test_a_table_with_two_untrained_encoders_is_compared_with_the_number_of_the_paper():
    """Encoders of a table may read signals otherwise; each has its untrained one, and the paper has one for all."""
    place = attrs.evolve(PLACE, downstream="cardiology", protocol="finetune")
    names = [f"random encoder=cnn normalise={how}" for how in ("min-max", "none")]
    untrained = [attrs.evolve(place, method="random", name=name) for name in names]
    lines = [line(place, 0.8, printed=0.75, gain=0.1), *(line(one, 0.7, printed=0.7) for one in untrained)]
    lines[1] = attrs.evolve(lines[1], printed=None)
    found = tables(transfer_4_leads=Summary(tuple(lines), ()))
    (gain,) = paper_claims.over_random(found, ["transfer-4-leads"], ["cmsc"])
    assert gain.papers == (pytest.approx(0.05),)
    assert gain.ours == (0.1, pytest.approx(0.09), pytest.approx(0.11))


def test_byol_is_judged_by_the_papers_rule() -> None:
    """The other row of BYOL has no number of the paper beside it."""
    from clocs_plugins.paper_tables.published import PAPERS_RULE

    condition = attrs.evolve(PLACE, method="byol", options=PAPERS_RULE)
    assert condition.row == paper_claims.BYOL


def test_seeds_that_one_method_lacks_leave_distances_open() -> None:
    spread = [Spread((row,), 0.0, None, None) for row in ((0.9, 0.8, 0.7), (0.5, 0.45))]
    lines = tuple(
        DistanceLine(PLACE, name, each, each, each) for name, each in zip(("cmsc", "simclr"), spread, strict=True)
    )
    half = attrs.evolve(tables(), distances={"patient-distances": lines})
    assert [one.outcome for one in paper_claims.separations(half, "patient-distances")] == ["missing"]


def test_files_of_another_grid_are_said_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = Path(paper_claims.__file__).parent / "paper.toml"
    given = [str(tmp_path), "--asked", str(asked), "--out", str(tmp_path / "claims.md")]
    assert paper_claims.main(given) == 2
    assert "Error: " in capsys.readouterr().err
    assert page(Tables({}, {}), "").count("**Not made**") == 10


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
    claim = Claim("one is above the other", "section 9", lambda tables: [])
    assert "(section 9; the interval is as if the two were scored on different patients" in say(claim, [wide])
    paired = attrs.evolve(
        tables(effect_of_dimension=Summary(sizes, ())), across=lambda line, other: Judged(0.09, 0.08, 0.1, 0.01, 0.0)
    )
    (narrow,) = paper_claims.by_dimension(paired, "effect-of-dimension", 128, 32)
    assert narrow.ours == (0.09, 0.08, 0.1)
    assert say(claim, [narrow]).startswith("**Holds**: one is above the other (section 9): ")
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
