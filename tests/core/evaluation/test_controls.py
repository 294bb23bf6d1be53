"""The name of a control: labels and rows that differ must give another, whatever the files are called."""

import attrs
import torch
from fake_frames import fake_cohort

from clocs_core.evaluation.controls import digest_rows, is_control
from clocs_core.evaluation.labelled_frames import list_labelled_frames


def bench_of(folder, without=(), corrected=()):
    cohort = fake_cohort(folder, without)
    entries = [
        attrs.evolve(one, label=(one.label + 1) % 3) if one.record in corrected else one
        for one in cohort.listing.entries
    ]
    cohort = attrs.evolve(cohort, listing=attrs.evolve(cohort.listing, entries=entries))
    return list_labelled_frames(cohort, False, False, torch.device("cpu"))


def test_a_corrected_label_gives_other_rows_and_the_same_rows_the_same(tmp_path):
    """Labels lie in a table of their own: it may change while every signal stays."""
    first, second = (bench_of(tmp_path / name) for name in ("a", "b"))
    assert digest_rows(first) == digest_rows(second)
    assert digest_rows(first) != digest_rows(bench_of(tmp_path / "c", corrected={"r0-1"}))


def test_a_label_that_is_missing_gives_other_rows(tmp_path):
    """Its frames are in no part then."""
    assert digest_rows(bench_of(tmp_path / "a")) != digest_rows(bench_of(tmp_path / "b", {"r0-0"}))


def test_controls_are_the_untrained_encoder_and_the_prior():
    """What a run trained is its own."""
    assert is_control(("finetune", "random", 0.5))
    assert is_control(("prior", "random", 1.0))
    assert not is_control(("linear", "method", 1.0))
