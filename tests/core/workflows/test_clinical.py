"""The worst recordings on paper: read again, from the frame that is wrong; one that is gone costs a warning."""

from __future__ import annotations

import attrs
import numpy as np
from clinical_records import clinical
from fake_frames import fake_cohort
from fake_offers import TinyOptions, tiny

from clocs_core.artifacts.clinical import WorstRecording
from clocs_core.contracts.records import Record
from clocs_core.plan.data import Chosen
from clocs_core.workflows import clinical as clinical_workflow
from clocs_core.workflows.clinical import begin_clinical, begin_worst
from clocs_core.workflows.drawing import Drawing


def worst(record, start=0):
    return WorstRecording(record=record, patient="p5", label="a", predicted="b 0.90", error=0.9, start=start)


def dataset(load):
    return Chosen(attrs.evolve(tiny(), load=load), TinyOptions())


def loads(told):
    def load(entry, options):
        told.append(entry.record)
        if entry.record == "r5-1":
            raise OSError("the disk is gone")
        return Record(entry.patient, entry.record, ("II",), "mV", 100.0, np.zeros((1, 3000)))

    return load


def test_three_are_drawn_and_one_that_is_gone_is_told(tmp_path, no_pictures):
    told, warnings = [], []
    held = clinical(worst=(worst("r5-0", 2500), worst("r5-1"), worst("r4-0"), worst("r4-1")))
    found = begin_worst(held, dataset(loads(told)), fake_cohort(tmp_path), warnings.append, Drawing())()
    assert told == ["r5-0", "r5-1", "r4-0"]
    assert [one.name for one in found] == ["worst-1", "worst-3"]
    assert "from second 20" in found[0].caption  # ten seconds are left from there
    assert "Labelled a; predicted b 0.90." in found[0].caption
    assert warnings == ["Recording 'r5-1' is not drawn in the report: OSError: the disk is gone"]


def test_the_sections_have_curves_and_papers(tmp_path, no_pictures):
    cohort = fake_cohort(tmp_path)
    held = clinical(worst=(worst("r5-0"),))
    classes, papers = begin_clinical(held, dataset(loads([])), cohort, lambda text: None, Drawing())()
    assert [one.name for one in classes.pictures] == ["class-curves"]
    assert [one.name for one in papers.pictures] == ["worst-1"]
    assert begin_clinical(None, dataset(loads([])), cohort, lambda text: None, Drawing())() == []


def test_without_pictures_no_recording_is_read_again(tmp_path):
    told = []
    held = clinical(worst=(worst("r5-0"),))
    sections = begin_clinical(held, dataset(loads(told)), fake_cohort(tmp_path), lambda text: None, None)()
    assert [list(one.pictures) for one in sections] == [[], []]
    assert told == []


def test_one_that_cannot_be_drawn_is_told_and_the_others_are_there(tmp_path, monkeypatch):
    def draw(record, title, dpi):
        if "r5-0" in title:
            raise ValueError("no such channel")
        return b"drawn"

    warnings = []
    monkeypatch.setattr(clinical_workflow, "draw_recording", draw)
    held = clinical(worst=(worst("r5-0"), worst("r4-0")))
    found = begin_worst(held, dataset(loads([])), fake_cohort(tmp_path), warnings.append, Drawing())()
    assert [(one.name, one.png) for one in found] == [("worst-2", b"drawn")]
    assert warnings == ["Recording 'r5-0' is not drawn in the report: ValueError: no such channel"]
