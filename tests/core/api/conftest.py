"""One small run and one evaluation in memory, for all tests of the Python API."""

from __future__ import annotations

import pytest
from fake_recordings import recordings_in_memory
from fake_runs import ARGUMENTS
from no_pictures import without_pictures

import clocs_core as clocs


@pytest.fixture(scope="session")
def data() -> clocs.Recordings:
    return recordings_in_memory()


@pytest.fixture(scope="session")
def run(data: clocs.Recordings) -> clocs.Run:
    with without_pictures():  # no test here looks at them
        return clocs.pretrain("cmsc", data, seed=0, temperature=0.05, **ARGUMENTS)


@pytest.fixture(scope="session")
def tuned(run: clocs.Run, data: clocs.Recordings, tmp_path_factory: pytest.TempPathFactory) -> clocs.EvaluationResults:
    return clocs.evaluate(
        run.encoder,
        data,
        protocol="finetune",
        label_fraction=[0.5, 1.0],
        epochs=2,
        batch_size=16,
        learning_rate=0.01,
        resamples=20,
        permutations=20,
        out=tmp_path_factory.mktemp("evaluation") / "e",
        progress=False,
    )
