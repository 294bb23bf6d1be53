"""The sections for clinicians: every number with its interval, a word where there is none, all of it escaped."""

from __future__ import annotations

import attrs
from clinical_records import clinical, numbers

from clocs_core.contracts.events import Picture
from clocs_core.report.blocks import render_section
from clocs_core.report.clinical import clinical_sections

EVIL = "<script>alert(1)</script>"


def page(held, **more):
    return "".join(render_section(one) for one in clinical_sections(held, **more))


def test_without_a_score_there_is_no_section():
    assert clinical_sections(None) == []


def test_every_class_has_its_row_and_the_control_beside_it():
    classes, worst = clinical_sections(clinical())
    table, matrix = classes.tables
    assert table.headings[:4] == ("class", "AUROC", "AUROC of random", "AUPRC")
    assert table.rows[0][:3] == ("a", "0.800 [0.700, 0.900]", "0.800 [0.700, 0.900]")
    assert table.rows[0][-4:] == ("1,234", "12", "7", "")
    assert table.rows[1][1] == "n/a"
    assert table.rows[1][-1] == "no test recording has it"
    assert matrix.rows == [("a", "3 (75%)", "1 (25%)"), ("b", "1 (25%)", "3 (75%)")]
    assert matrix.classes[0, 1] == "shade-7"
    assert worst.tables[0].rows == [("r1", "a", "b 0.90, a 0.05", "0.950", "p1")]
    said = classes.sentences[0]
    assert "40 recordings of 20 test patients" in said
    assert "largest Youden index" in said


def test_classes_that_can_hold_together_have_four_counts_each():
    held = clinical(kind="any_of", confusion=())
    counts = clinical_sections(held)[0].tables[1]
    assert counts.rows == [("a", "3", "2", "0", "0"), ("b", "n/a", "n/a", "n/a", "n/a")]


def test_an_untrained_encoder_has_no_second_column():
    held = clinical()
    alone = attrs.evolve(held, init="random", classes=tuple(one for one in held.classes if one.init == "random"))
    assert clinical_sections(alone)[0].tables[0].headings[:3] == ("class", "AUROC", "AUPRC")


def test_scores_of_validation_patients_are_called_too_good():
    assert "both numbers are too good" in clinical_sections(clinical(part="validation"))[0].sentences[0]


def test_a_number_is_shown_against_its_true_value():
    section, _ = clinical_sections(numbers())
    assert section.title == "Predicted against true"
    assert "predicted - true, in years" in section.sentences[0]
    assert section.tables[0].rows[0] == ("mine", "0.800 [0.700, 0.900]", "0.800 [0.700, 0.900]", "-3.000 to 5.000")


def test_names_cannot_run_anything():
    held = clinical(names=(EVIL, "b"))
    worst = attrs.evolve(held.worst[0], record=EVIL, patient=EVIL, label=EVIL, predicted=EVIL)
    text = page(attrs.evolve(held, worst=(worst,)), papers=[Picture("worst-1", EVIL, EVIL, b"\x89PNG" + bytes(20))])
    assert "<script" not in text
    assert text.count("&lt;script&gt;") > 6
