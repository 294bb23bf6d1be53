"""Rules for protocols: they answer every kind of task that they name, and learn from the training rows alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from clocs_core.contracts.kinds import KINDS
from clocs_core.contracts.protocols import Answer, Features, Trial
from clocs_core.contracts.records import Task
from clocs_core.contracts.result_offers import Protocol
from clocs_core.evaluation.protocols import fault_of, withhold
from clocs_core.testing.assembly import SmallEncoder
from clocs_core.testing.checks import Check, expect, label_of, make_checks, rules_of
from clocs_core.testing.pace import Clock, expect_quick

TRAIN, OTHERS, DIM, SAMPLES = 40, 12, 6, 50
_CLASSES = ("a", "b", "c")


@attrs.frozen
class _Case:
    offer: Protocol
    options: Any
    clock: Clock

    def answer(self, trial: Trial) -> Answer:
        """Return the answer to a trial, with torch seeded as core does."""
        assert self.offer.predict is not None
        torch.manual_seed(trial.seed)
        return self.offer.predict(self.options, withhold(trial))

    def trials(self) -> Iterator[Trial]:
        """Yield a trial of every kind of task that the protocol names."""
        for kind in self.offer.tasks:
            if kind in KINDS:
                yield _trial(kind, self.offer)


def checks_of_protocol(offer: Protocol, options: Any, clock: Clock) -> list[Check]:
    """Return the checks of a protocol."""
    return make_checks(label_of(offer), rules_of(__name__), _Case(offer, options, clock))


def _tasks(case: _Case) -> None:
    """The protocol names the kinds of task that it can learn."""
    tasks = case.offer.tasks
    fits = isinstance(tasks, tuple) and len(tasks) > 0 and set(tasks) <= set(KINDS)
    expect(fits, f"a tuple of {' and '.join(map(repr, KINDS))}", repr(tasks), "Name the kinds of task it can learn.")


def _answers(case: _Case) -> None:
    """Every scored row gets finite float64 predictions (n, output): probabilities from 0 to 1, or a number."""
    for trial in case.trials():
        fault = fault_of(case.answer(trial), trial)
        expect(not fault, f"an Answer to a task of the kind {trial.task.kind}", f"one that {fault}", "Correct it.")


def _repeats(case: _Case) -> None:
    """The same trial gives the same answer."""
    for trial in case.trials():
        first, second = (_predicted(case.answer(_trial(trial.task.kind, case.offer))) for _ in range(2))
        expect(np.array_equal(first, second), "the same predictions", "others", "Draw numbers from the trial's seed.")


def _rows_are_independent(case: _Case) -> None:
    """The prediction of a scored row does not depend on the other scored rows: they would be learnt from."""
    for trial in case.trials():
        whole = _predicted(case.answer(trial))
        some = np.arange(0, OTHERS, 2)
        again = _trial(trial.task.kind, case.offer)
        part = _predicted(case.answer(attrs.evolve(again, scored=again.scored.take(some), signal=_Signals(some))))
        same = part.shape == whole[some].shape and np.allclose(part, whole[some], atol=1e-5)
        expect(bool(same), "the same predictions with fewer scored rows", "others", "Fit on the training rows alone.")


def _trial_unchanged(case: _Case) -> None:
    """The arrays of a trial are not modified: other label fractions use them again."""
    for trial in case.trials():
        parts = [part for part in (trial.train, trial.validation, trial.scored) if part is not None]
        kept = [(part.embedding.copy(), part.label.copy()) for part in parts]
        case.answer(trial)
        same = all(
            np.array_equal(part.embedding, x) and np.array_equal(part.label, y, equal_nan=True)
            for part, (x, y) in zip(parts, kept, strict=True)
        )
        expect(same, "the arrays as they were", "other values", "Work on copies.")


def _quick(case: _Case) -> None:
    """A few rows take little processor time."""
    for trial in case.trials():
        advice = "Work on all rows at once, without loops."
        expect_quick(lambda trial=trial: case.answer(trial), f"{TRAIN} rows", advice, case.clock)  # type: ignore[misc]


def _predicted(answer: object) -> NDArray[Any]:
    return np.asarray(getattr(answer, "predicted", np.nan))


@attrs.frozen
class _Signals:
    """The signals of rows of a made-up trial. scored: the numbers of its scored rows."""

    scored: NDArray[np.int64]

    def __call__(self, part: str, rows: NDArray[np.int64]) -> Tensor:
        numbers = self.scored[rows] if part == "scored" else rows
        seed = {"train": 0, "validation": 1, "scored": 2}[part]
        every = torch.randn(TRAIN, 1, SAMPLES, generator=torch.Generator().manual_seed(seed))
        return every[torch.from_numpy(numbers)]


def _trial(kind: str, offer: Protocol) -> Trial:
    rng = np.random.default_rng(0)
    number, dim = kind == "number", 0 if offer.wants == "encoder" else DIM

    def rows(count: int) -> Features:
        code = np.arange(count) % len(_CLASSES)
        labels: dict[str, NDArray[Any]] = {
            "any_of": np.eye(len(_CLASSES), dtype=np.int64)[code],
            "number": (60.0 + 5.0 * code).astype(np.float32),
        }
        embedding = (rng.normal(size=(count, DIM)) + code[:, None]).astype(np.float32)[:, :dim]
        return Features(embedding, labels.get(kind, code), np.arange(count) // 2, np.arange(count))

    wanted: dict[str, Any] = {}
    if offer.wants == "encoder":
        torch.manual_seed(0)
        network = SmallEncoder(1, SAMPLES, DIM).eval()
        wanted = {"encoder": network, "signal": _Signals(np.arange(OTHERS))}
    task = Task("fake", () if number else _CLASSES, kind=kind)  # type: ignore[arg-type]  # a name of KINDS
    train, validation, scored = rows(TRAIN), rows(OTHERS), rows(OTHERS)
    return Trial(
        task=task,
        train=train,
        validation=validation if offer.validation else None,
        scored=scored,
        seed=3,
        device=torch.device("cpu"),
        **wanted,
    )
