"""The distances of a report: a histogram small enough to read, with every pair in it."""

from __future__ import annotations

import attrs
import numpy as np

from clocs_core.artifacts.documents import as_plain
from clocs_core.artifacts.reports import PatientSeparation
from clocs_core.evaluation.patient_distances import patient_distances
from clocs_core.workflows.summary import summarise_distances


def test_every_encoder_has_its_numbers_and_at_most_64_bins_with_all_pairs_in_them():
    """What figure 6 of the paper is drawn from. 40 rows of 8 patients are 80 pairs within, 700 between."""
    rng = np.random.default_rng(0)
    rows, patient = rng.normal(size=(40, 6)).astype(np.float32), np.arange(40) % 8
    found = {"method": patient_distances(rows, patient), "random": patient_distances(3 * rows, patient), "none": None}
    first, second = summarise_distances(found)
    assert (first.init, second.init) == ("method", "random")
    for one in (first, second):
        assert len(one.edges) == len(one.intra) + 1 == len(one.inter) + 1 <= 65
        assert (sum(one.intra), sum(one.inter)) == (80, 700)
        assert all(type(count) is int for count in (*one.intra, *one.inter))
    assert first.intra_mean == found["method"].intra_mean
    assert np.allclose(3 * np.array(first.edges), second.edges)


def test_it_reads_back_and_a_report_without_histograms_does_too():
    """Reports of before they were kept stay readable."""
    kept = PatientSeparation(
        init="a", intra_mean=1.0, inter_mean=2.0, separation=0.9, edges=(0.0, 1 / 3), intra=(3,), inter=(4,)
    )
    plain = as_plain(attrs.asdict(kept))
    assert plain["edges"] == [0.0, 1 / 3]
    assert PatientSeparation(init="a", intra_mean=1.0, inter_mean=2.0, separation=0.9).edges == ()
