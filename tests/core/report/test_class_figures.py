"""Pictures for clinicians: drawn from the records alone, the same bytes each time."""

from __future__ import annotations

from io import BytesIO

import attrs
from clinical_records import class_result, clinical, numbers
from PIL import Image

from clocs_core.report.class_figures import class_curves, predicted_against_true


def test_curves_are_drawn_the_same_each_time():
    first, again = class_curves(clinical()), class_curves(clinical())
    assert first.png == again.png
    assert first.name == "class-curves"
    assert Image.open(BytesIO(first.png)).width < 1200  # two columns: readable on a phone


def test_many_classes_with_odd_names_can_be_told_apart():
    many = [f"$x_{n}$ {'long' * 20}" for n in range(24)]
    held = clinical(classes=tuple(class_result(name) for name in ("_hidden", *many)))
    assert class_curves(held).png != class_curves(clinical()).png


def test_what_has_no_curve_has_no_picture():
    held = clinical()
    assert class_curves(attrs.evolve(held, classes=tuple(attrs.evolve(one, roc=()) for one in held.classes))) is None
    assert predicted_against_true(held) is None


def test_a_number_is_drawn():
    found = predicted_against_true(numbers())
    assert found.png.startswith(b"\x89PNG")
    assert "limits of agreement" in found.caption
