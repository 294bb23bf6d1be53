"""The table of defaults in docs/methods.md has the settings that a run takes where nothing is set."""

import re

import pytest
from doc_commands import ROOT

from clocs_core.errors import SettingsError
from clocs_core.plan.pretraining import resolve
from clocs_core.plugins.session import open_session

PAGE = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
TABLE = PAGE.partition("## Defaults of training\n")[2].partition("\n## ")[0]
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\| `.*$", TABLE, re.MULTILINE)]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


TOLD = {
    (method, dataset): (int(epochs), int(batch), float(rate), names(optimiser)[0])
    for methods, datasets, epochs, batch, rate, optimiser in ROWS
    for method in names(methods)
    for dataset in names(datasets)
}


@pytest.fixture(scope="module")
def catalogue():
    return open_session().catalogue


def resolved(catalogue, method, dataset, *more):
    """The settings of training of a run; None where the data set cannot serve the method."""
    try:
        return resolve(catalogue, {}, [f"run.method={method}", f"run.dataset={dataset}", *more]).train
    except SettingsError as problem:
        if "needs at least 2 channels" not in str(problem):
            raise
        return None


def test_every_method_on_every_data_set_has_the_defaults_of_the_table(catalogue):
    assert {method for method, _ in TOLD} == {item.offer.name for item in catalogue.methods}
    assert {dataset for _, dataset in TOLD} == {item.offer.name for item in catalogue.datasets}
    for (method, dataset), told in TOLD.items():
        train = resolved(catalogue, method, dataset)
        if train is not None:
            assert (train.epochs, train.batch_size, train.learning_rate, train.optimiser) == told, (method, dataset)
            assert (train.schedule, train.warm_up) == (("cosine", 0.02) if told[3] == "adamw" else ("constant", 0))


def test_the_encoder_with_settings_of_its_own_gives_them_to_the_methods_of_the_first_rows(catalogue):
    for method in names(ROWS[0][0]):
        for dataset in {dataset for _, dataset in TOLD}:
            train = resolved(catalogue, method, dataset, "run.encoder=xresnet1d")
            if train is not None:
                assert (train.epochs, train.batch_size, train.learning_rate) == (25, 128, 2e-3), (method, dataset)
    assert "25 epochs, batches of 128, and `adamw` at 2e-3." in " ".join(TABLE.split())
