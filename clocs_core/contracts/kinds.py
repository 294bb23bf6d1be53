"""The kinds of task: how labels of each kind are kept, decoded, guessed without a signal and put into words.

`kind_of` finds the kind of a task. Losses, linear models and heads are in tables by kind, where they are used.
NumPy and torch are imported inside functions, because contracts import neither.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from clocs_core.contracts.records import Episode, FrameLabel, Label, Task

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    Labels = NDArray[np.int64] | NDArray[np.float32]


class Kind(ABC):
    """One kind of task. Rows of labels are arrays as in `Features`.

    overlap: what counts where episodes overlap: the one that starts `last`, or `all` of them.
    least: outputs that a network must have to learn the task. noun: the word for a label; predicted: for an output.
    loss: the loss of fine-tuning, in words; linear: the model of linear evaluation.
    """

    overlap: str = "last"
    least: int = 1
    noun: str = "class"
    predicted: str = "probability"
    loss: str
    linear: str = "logistic regression"

    @abstractmethod
    def as_array(self, labels: Sequence[FrameLabel | None], task: Task) -> Labels:
        """Return the labels of frames as a store keeps them, with a mark for frames without one."""

    @abstractmethod
    def decode(self, logits: Tensor) -> Tensor:
        """Turn the outputs of a network (n, output) into what is predicted."""

    @abstractmethod
    def guess(self, label: Labels, task: Task) -> NDArray[np.float64]:
        """Predict (output,) from training labels alone: the control without any signal."""

    @abstractmethod
    def decide(self, predicted: NDArray[np.float64], names: Sequence[str]) -> str | tuple[str, ...] | float:
        """Return the label that a prediction (output,) stands for. names: of the outputs."""

    @abstractmethod
    def fault(self, label: object, task: Task) -> str:
        """Return what is wrong with a label of a recording or an episode; empty if nothing."""

    def values(self, label: Label) -> Iterable[Any]:
        """Return the classes, or the numbers, that occur in a label of a recording."""
        if label is None:
            return ()
        parts = [one.label for one in label] if isinstance(label, tuple) else [label]
        return {value for one in parts for value in (one if isinstance(one, frozenset) else (one,))}

    def nothing_to_tell(self, values: Iterable[Any], task: Task) -> str:
        """Return the one value that all labels have, in words, if there is nothing to learn from them; else ""."""
        return ""

    def count(self, labels: Iterable[FrameLabel | None], task: Task) -> dict[str, int]:
        """Count the labels by class."""
        counts = dict.fromkeys(task.classes, 0)
        for label in labels:
            for one in self.values(label):
                counts[task.classes[one]] += 1
        return counts

    def words(self, label: FrameLabel, task: Task) -> str:
        """Return the label of a recording or a frame in words."""
        return " + ".join(task.classes[one] for one in sorted(self.values(label))) or "none of the classes"

    def row_in_words(self, label: NDArray[Any], task: Task, none: str = "no label") -> str:
        """Return the label of one row of `Features` in words."""
        if label.ndim == 0:
            return none if label < 0 else task.classes[int(label)]
        return none if (label < 0).any() else self.words(frozenset(label.nonzero()[0].tolist()), task)


class OneOf(Kind):
    """Exactly one of the classes holds. Labels are (n,) int64, -1 for none."""

    least = 2
    loss = "softmax cross-entropy"

    def as_array(self, labels: Sequence[FrameLabel | None], task: Task) -> Labels:
        """Return (n,) int64."""
        import numpy as np

        return np.array([-1 if label is None else label for label in labels], dtype=np.int64)

    def decode(self, logits: Tensor) -> Tensor:
        """Return probabilities (n, class) that sum to 1."""
        return logits.softmax(1)

    def guess(self, label: Labels, task: Task) -> NDArray[np.float64]:
        """Return the share of each class."""
        import numpy as np

        return np.bincount(label.astype(np.int64, copy=False), minlength=len(task.classes)) / len(label)

    def decide(self, predicted: NDArray[np.float64], names: Sequence[str]) -> str:
        """Return the most probable class."""
        return names[int(predicted.argmax())]

    def nothing_to_tell(self, values: Iterable[Any], task: Task) -> str:
        """Name the only class."""
        present = sorted(set(values))
        return task.classes[int(present[0])] if len(present) == 1 else ""

    def fault(self, label: object, task: Task) -> str:
        """Accept a class by its number."""
        if isinstance(label, frozenset):
            return "a set of classes is a label of an any-of task"
        return _fault_of_classes([label], task)


class AnyOf(Kind):
    """Any number of the classes holds. Labels are (n, class): float32 with NaN in a store, int64 with -1 in rows."""

    overlap = "all"
    loss = "binary cross-entropy, mean over classes"

    def as_array(self, labels: Sequence[FrameLabel | None], task: Task) -> Labels:
        """Return (n, class) float32 of 0 and 1; a row of NaN for none."""
        import numpy as np

        rows = np.full((len(labels), len(task.classes)), np.nan, dtype=np.float32)
        for row, label in zip(rows, labels, strict=True):
            if label is not None:
                row[:] = 0
                row[list(self.values(label))] = 1
        return rows

    def decode(self, logits: Tensor) -> Tensor:
        """Return a probability of each class (n, class)."""
        return logits.sigmoid()

    def guess(self, label: Labels, task: Task) -> NDArray[np.float64]:
        """Return the share of rows in which each class holds."""
        shares: NDArray[np.float64] = label.mean(axis=0)
        return shares

    def decide(self, predicted: NDArray[np.float64], names: Sequence[str]) -> tuple[str, ...]:
        """Return all classes above one half."""
        return tuple(name for name, p in zip(names, predicted, strict=True) if p > 0.5)

    def fault(self, label: object, task: Task) -> str:
        """Accept a set of classes."""
        if not isinstance(label, frozenset):
            return "a label of an any-of task is a frozenset"
        return _fault_of_classes(label, task)


class Number(Kind):
    """A measurement, such as an age. Labels are (n,) float32, NaN for none; so is what is predicted, as (n, 1)."""

    noun = predicted = "value"
    loss = "mean squared error"
    linear = "ridge regression"

    def as_array(self, labels: Sequence[FrameLabel | None], task: Task) -> Labels:
        """Return (n,) float32."""
        import numpy as np

        return np.array([np.nan if label is None else label for label in labels], dtype=np.float32)

    def decode(self, logits: Tensor) -> Tensor:
        """Return the outputs as they are."""
        return logits

    def guess(self, label: Labels, task: Task) -> NDArray[np.float64]:
        """Return the mean of the training labels (1,)."""
        import numpy as np

        return np.array([label.mean(dtype=np.float64)])

    def decide(self, predicted: NDArray[np.float64], names: Sequence[str]) -> float:
        """Return the number."""
        return float(predicted[0])

    def nothing_to_tell(self, values: Iterable[Any], task: Task) -> str:
        """Name the only value."""
        present = set(values)
        return self.words(float(present.pop()), task) if len(present) == 1 else ""

    def count(self, labels: Iterable[FrameLabel | None], task: Task) -> dict[str, int]:
        """Count the labels, whatever their value."""
        return {"labelled": sum(label is not None for label in labels)}

    def words(self, label: FrameLabel, task: Task) -> str:
        """Return the number with its unit."""
        return f"{label:g} {task.unit}".strip()

    def row_in_words(self, label: NDArray[Any], task: Task, none: str = "no label") -> str:
        """Return the number with its unit."""
        return none if label != label else self.words(float(label), task)

    def fault(self, label: object, task: Task) -> str:
        """Accept a finite number."""
        finite = isinstance(label, (int, float)) and not isinstance(label, bool) and abs(label) < float("inf")
        return "" if finite else "a label of a number task is a finite int or float"


KINDS: dict[str, Kind] = {"one_of": OneOf(), "any_of": AnyOf(), "number": Number()}
"""Every kind of task by its name."""


def kind_of(task: Task) -> Kind:
    """Return the kind of a task."""
    return KINDS[task.kind]


def fault_of_label(label: Label, task: Task) -> str:
    """Return what is wrong with the label of a recording; empty if nothing."""
    if label is None:
        return ""
    if isinstance(label, tuple):
        if task.per != "frame" or not all(type(one) is Episode for one in label):
            return "a tuple must hold episodes, of a task per frame"
        if any(not 0 <= one.onset <= one.offset for one in label):
            return "an episode must begin at 0 or later, and end after it begins"
        if any(first.onset > second.onset for first, second in pairwise(label)):
            return "episodes must be in the order in which they begin"
        parts: list[object] = [one.label for one in label]
        if task.kind == "any_of":
            parts = [one.classes for one in label]
    else:
        parts = [label]
    return next(filter(None, (kind_of(task).fault(one, task) for one in parts)), "")


def kind_of_rows(label: NDArray[Any]) -> str:
    """Return the name of the kind that rows of labels are of, as in `Features`."""
    if label.ndim == 2:
        return "any_of"
    return "number" if label.dtype.kind == "f" else "one_of"


def as_rows(label: NDArray[Any]) -> NDArray[Any]:
    """Return labels of a store as rows of `Features`: those of an any-of task become int64 with -1 for none."""
    import numpy as np

    return np.nan_to_num(label, nan=-1).astype(np.int64) if label.ndim == 2 else label


def _fault_of_classes(classes: Iterable[object], task: Task) -> str:
    known = len(task.classes) or float("inf")  # no classes: the files name them
    fits = all(type(one) is int and 0 <= one < known for one in classes)
    return "" if fits else f"classes are int, 0 to {known - 1}"
