"""Where the classifiers of an evaluation are made, kept as they finish, or taken from those that evaluations share."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import torch

from clocs_core.data.material import Material
from clocs_core.errors import DataError, RunFolderError
from clocs_core.evaluate.cells import Cell, CellMaker, keys_of
from clocs_core.evaluate.classifierfile import save_classifier
from clocs_core.evaluate.controls import control_facts, control_name, digest_rows, is_control
from clocs_core.evaluate.predictionfile import Classifier
from clocs_core.evaluationfolder import Controls, EvaluationFolder, Finished
from clocs_core.files import write_atomically
from clocs_core.heard import hear_warnings
from clocs_core.progress import Display
from clocs_core.report.evaluated import CellSummary
from clocs_core.train.checkpoint import read_tensors

__all__ = ["Workshop"]


@attrs.frozen(eq=False)
class Workshop:
    """Where the classifiers of one evaluation are made, or taken from those that evaluations share."""

    maker: CellMaker
    material: Material
    versions: dict[str, str]
    folder: EvaluationFolder
    shared: Controls | None
    show: Display
    kept: dict[Classifier, Finished] = attrs.field(factory=dict, init=False)  # read from their files

    def finish_all(self) -> dict[Classifier, Finished]:
        """Make what is not finished, then read everything back from its file, in the order of the report.

        So a score does not depend, to the last bit, on whether its evaluation was interrupted.
        """
        keys = keys_of(self.maker.asked)
        self._read_back(keys)
        missing, names = [key for key in keys if key not in self.kept], self._names(keys)
        if len(missing) < len(keys):
            self.show.say(f"going on: {len(keys) - len(missing)} of {len(keys)} classifiers are finished")
        busy: list[Classifier] = []
        # By init, so that each encoder embeds once; controls last, for another process may be at them.
        for number, key in enumerate(sorted(missing, key=lambda key: (is_control(key), key[1])), start=1):
            self.show.stage(f"{_say(key)} ({number} of {len(missing)})")
            if not self._finish(key, names.get(key), wait=False):
                busy.append(key)
        for number, key in enumerate(busy, start=1):
            self.show.stage(f"waiting for another process: {_say(key)} ({number} of {len(busy)})")
            self._finish(key, names.get(key), wait=True)
        self._read_back(keys)
        return {key: self.kept[key] for key in keys}

    def _read_back(self, keys: Sequence[Classifier]) -> None:
        """Read what is finished and was not read yet."""
        for key in keys:
            if key not in self.kept and (cell := self.folder.finished(key)) is not None:
                self.kept[key] = cell

    def _names(self, keys: Sequence[Classifier]) -> dict[Classifier, str]:
        """What evaluations that share controls call each of them."""
        if self.shared is None:
            return {}
        rows, asked = digest_rows(self.maker.bench), self.maker.asked
        return {
            key: control_name(control_facts(key, asked, self.material, rows, self.versions))
            for key in keys
            if is_control(key)
        }

    def _finish(self, key: Classifier, name: str | None, wait: bool) -> bool:
        """Finish one classifier. False where another process is making it for all, and is not to be waited for.

        name: of a control that is shared.
        """
        if self.shared is None or name is None:
            self._make(key)
            return True
        with self.shared.lock(name, wait) as ours:
            if ours and not self._take(key, self.shared.folder(name)) and self._make(key):
                self._share(key, self.shared.folder(name))
        return ours

    def _make(self, key: Classifier) -> bool:
        """Make one classifier and keep it; where the labels are too few, keep why there is none, and return False."""
        protocol, init, fraction = key
        clock, store = self.maker.watch.clock, self.maker.bench.store
        began = clock()
        summary = CellSummary(protocol=protocol, init=init, label_fraction=fraction)
        self.folder.cells.mkdir(exist_ok=True)
        try:
            with hear_warnings() as heard:  # kept with the classifier: whoever takes it is told too
                cell = self.maker.make(key, self.folder.checkpoint(key))
        except DataError as problem:  # the other shares are worth keeping
            summary = attrs.evolve(summary, notes=(f"There is no score at F = {fraction:g}: {problem}",))
            self.folder.finish(key, Finished(summary), store.patients, store.records)
            return False
        if cell.network is not None:
            self._save_weights(key, cell.network.state_dict())
        summary = _with_numbers(summary, cell, clock() - began, heard)
        self.folder.finish(key, Finished(summary, cell.predictions, cell.curve), store.patients, store.records)
        return True

    def _save_weights(self, key: Classifier, weights: dict[str, torch.Tensor]) -> None:
        _, init, fraction = key
        file = self.folder.classifier(init, fraction)
        file.parent.mkdir(exist_ok=True)
        save_classifier(weights, self.maker.asked, self.material, init, fraction, self.versions, file)

    def _take(self, key: Classifier, control: EvaluationFolder) -> bool:
        """Take a control that is there. Its weights get this evaluation's own description."""
        try:
            finished = control.finished(key)
            if finished is None:
                return False
            weights = control.classifier(key[1], key[2])
            if key[0] == "finetune":
                self._save_weights(key, read_tensors(weights)[0])
        except RunFolderError as problem:
            self.show.warn(f"{problem} It is made again.")
            return False
        self.folder.take_over(key, control)
        self.kept[key] = finished
        self.show.say(f"{_say(key)}: taken from {control.path}")
        return True

    def _share(self, key: Classifier, control: EvaluationFolder) -> None:
        """Leave a control for other evaluations: its weights, then the rest, numbers last."""
        source, target = (one.classifier(key[1], key[2]) for one in (self.folder, control))
        try:
            if key[0] == "finetune":
                target.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(target, source.read_bytes())
            control.take_over(key, self.folder)
        except OSError as problem:  # this evaluation has what it needs
            self.show.warn(f"The control could not be kept in {control.path}: {problem.strerror or problem}.")


_DOING = {"linear": "linear evaluation of {}", "finetune": "fine-tuning {}", "prior": "class prior"}


def _say(key: Classifier) -> str:
    protocol, init, fraction = key
    return f"{_DOING[protocol].format(init)}, F = {fraction:g}"


def _with_numbers(summary: CellSummary, cell: Cell, seconds: float, heard: Sequence[str]) -> CellSummary:
    return attrs.evolve(
        summary,
        epochs=cell.progress.epoch,
        best_epoch=cell.progress.best_epoch,
        steps=cell.steps,
        frames=cell.frames,
        patients=cell.patients,
        seconds=seconds,
        notes=(*heard, *cell.predictions.notes),
    )
