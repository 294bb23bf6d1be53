"""A method that needs to know more than signals: columns of the recordings, and several recordings of a patient."""

from __future__ import annotations

import attrs
import pytest
import torch
from fake_offers import TinyOptions, build_pairs, tiny, tiny_scan, together
from fake_plugins import points
from fake_runs import RUN
from torch import nn

from clocs_core import Column, Listing, Needs, NoOptions, Objective, Setup, ViewGenerator
from clocs_core.cli import main
from clocs_core.testing import checks_of, failures

pytestmark = pytest.mark.usefixtures("no_pictures")  # no test here looks at them

AGE, SEX = Column("age"), Column("sex", "category", ("female", "male"))
TOLD: list[tuple[Setup, dict[str, torch.Tensor]]] = []


class Aged(nn.Module):
    """Predicts the age from the embedding, where it is known."""

    def __init__(self, setup: Setup) -> None:
        super().__init__()
        self.setup, self.head = setup, nn.Linear(setup.embedding_dim, 1)

    def forward(self, encode, views):
        age = views.batch.about["age"]
        TOLD.append((self.setup, {name: values.clone() for name, values in views.batch.about.items()}))
        error = (self.head(encode(views.signal))[..., 0] - age.nan_to_num()).square()
        return (error * ~age.isnan()).mean()


class Careless(Aged):
    """Does not expect that an age is missing."""

    def forward(self, encode, views):
        return (self.head(encode(views.signal))[..., 0] - views.batch.about["age"]).square().mean()


def build_aged(options: NoOptions, setup: Setup) -> nn.Module:
    return Aged(setup)


def build_careless(options: NoOptions, setup: Setup) -> nn.Module:
    return Careless(setup)


def two_recordings(options: NoOptions) -> Needs:
    return Needs(segments=1, recordings=2, columns=(SEX,))


def aged_scan(root, task, options: TinyOptions) -> Listing:
    """The age is 10 times the patient's number, and missing in second visits."""
    listing = tiny_scan(root, task, options)

    def about(entry):
        first = entry.record.endswith("-0")
        return {"age": 10.0 * int(entry.patient[1:]) if first else None, "sex": "male"}

    return attrs.evolve(listing, entries=[attrs.evolve(one, about=about(one)) for one in listing.entries])


def single_scan(root, task, options: TinyOptions) -> Listing:
    """One recording of each patient."""
    listing = aged_scan(root, task, options)
    return attrs.evolve(listing, entries=[one for one in listing.entries if one.record.endswith("-0")])


AGED = Objective(name="aged", summary="s", build=build_aged, columns=(AGE,))


def command(folder, method: str, dataset: str) -> int:
    words = [{"together": method, "tiny": dataset}.get(word, word) for word in RUN]
    more = {
        "clocs_datasets": lambda: [
            tiny(),
            tiny("aged", scan=aged_scan, columns=(AGE, SEX)),
            tiny("single", scan=single_scan, columns=(AGE, SEX)),
        ],
        "clocs_views": lambda: [
            ViewGenerator(name="pairs", summary="s", needs=lambda options: Needs(segments=2), build=build_pairs),
            ViewGenerator(name="visits", summary="s", needs=two_recordings, build=build_pairs),
        ],
        "clocs_objectives": lambda: [AGED],
        "clocs_methods": lambda: [
            together("aged", loss=None, objective="aged"),
            together("visits", views="visits", loss=None, objective="aged"),
        ],
    }
    return main([*words, "--data-root", str(folder / "data"), "--out", str(folder / "run")], points(**more))


def test_columns_and_pairs_of_recordings_reach_the_objective(tmp_path):
    """Standardised on training patients, of the first recording, and with the facts to undo it."""
    TOLD.clear()
    assert command(tmp_path, "visits", "aged") == 0
    setup, about = TOLD[0]
    assert [column.name for column in setup.columns] == ["sex", "age"]
    age = setup.columns[1]
    years = about["age"] * age.deviation + age.mean
    assert torch.allclose(years, (years / 10).round() * 10, atol=1e-3)
    assert not about["age"].isnan().any()  # the second visits, which lack it, come second
    assert about["sex"].tolist() == [1] * len(about["sex"])


def test_a_data_set_without_the_column_is_refused_before_frames_are_prepared(tmp_path, capsys):
    assert command(tmp_path, "aged", "tiny") == 2
    assert "needs the column 'age' of each recording, a number; data set 'tiny' has none." in capsys.readouterr().err
    assert not (tmp_path / "data" / "prepared").exists()


def test_recordings_that_were_not_repeated_are_refused_in_a_sentence(tmp_path, capsys):
    assert command(tmp_path, "visits", "single") == 2
    said = capsys.readouterr().err
    assert "Method 'visits' contrasts 2 recordings of a patient" in said
    assert "no patient of the train part has as many" in said


def test_an_objective_of_columns_is_tried_with_values_that_are_missing():
    assert failures(checks_of(AGED)) == {}
    careless = attrs.evolve(AGED, build=build_careless)
    assert "finite" in failures(checks_of(careless))
