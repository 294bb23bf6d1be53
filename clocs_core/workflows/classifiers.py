"""Train the classifiers of an evaluation, keep each as it finishes, and share controls between evaluations."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from torch import Tensor

from clocs_core.artifacts.card import ClassifierCard
from clocs_core.artifacts.classifier import save_classifier
from clocs_core.artifacts.evaluation_folder import Controls, EvaluationFolder, Finished
from clocs_core.artifacts.predictions import Classifier
from clocs_core.artifacts.tensors import read_tensors
from clocs_core.data.cohort import Cohort
from clocs_core.errors import RunFolderError
from clocs_core.evaluation.classifiers import ClassifierMaker, list_classifiers
from clocs_core.evaluation.controls import control_facts, control_name, digest_rows, is_control
from clocs_core.files import write_atomically
from clocs_core.plan.chosen_protocol import ChosenProtocol
from clocs_core.progress import COMMAND, Display
from clocs_core.settings.options import plain
from clocs_core.workflows.environment import now
from clocs_core.workflows.leading import Lead


@attrs.frozen(eq=False)
class KeptClassifiers:
    """The classifiers of one evaluation: trained and kept, or copied from shared controls.

    lead: names each classifier to other processes, which make it too. earlier: the seconds that earlier processes
    spent on each, where the evaluation is resumed.
    """

    maker: ClassifierMaker
    cohort: Cohort
    versions: dict[str, str]
    folder: EvaluationFolder
    shared: Controls | None
    show: Display
    lead: Lead
    kept: dict[Classifier, Finished] = attrs.field(factory=dict, init=False)  # read from their files
    earlier: dict[Classifier, float] = attrs.field(factory=dict, init=False)

    @property
    def _protocol(self) -> ChosenProtocol:
        return self.maker.plan.protocol

    def finish_all(self) -> dict[Classifier, Finished]:
        """Train the missing classifiers, then read all of them from their files, in the order of the report.

        Reading them back makes scores bit for bit independent of interruptions.
        """
        keys = list_classifiers(self.maker.plan)
        self._read_back(keys)
        self.earlier.update({key: cell.summary.seconds for key, cell in self.kept.items()})
        missing, names = [key for key in keys if key not in self.kept], self._names(keys)
        if len(missing) < len(keys):
            self.show.say(f"resuming: {len(keys) - len(missing)} of {len(keys)} classifiers are finished")
        busy: list[Classifier] = []
        # Sorted by init, so that each encoder embeds once; controls last, because another process may be making them.
        for number, key in enumerate(sorted(missing, key=lambda key: (is_control(key), key[1])), start=1):
            self.show.stage(f"{self._protocol.say(key)} ({number} of {len(missing)})")
            if not self._finish(key, names.get(key), wait=False):
                busy.append(key)
        for number, key in enumerate(busy, start=1):
            self.show.stage(f"waiting for another process: {self._protocol.say(key)} ({number} of {len(busy)})")
            self._finish(key, names.get(key), wait=True)
        self._read_back(keys)
        return {key: self.kept[key] for key in keys}

    def _read_back(self, keys: Sequence[Classifier]) -> None:
        """Read the finished classifiers that are not read yet."""
        for key in keys:
            if key not in self.kept and (cell := self.folder.finished(key)) is not None:
                self.kept[key] = cell

    def _names(self, keys: Sequence[Classifier]) -> dict[Classifier, str]:
        """Return the name of each shared control."""
        if self.shared is None:
            return {}
        rows, plan = digest_rows(self.maker.frames), self.maker.plan
        return {
            key: control_name(control_facts(key, plan, self.cohort, rows, self.versions))
            for key in keys
            if is_control(key)
        }

    def _finish(self, key: Classifier, name: str | None, wait: bool) -> bool:
        """Finish one classifier. Returns False where another process is making the shared control and `wait` is False.

        name: name of a shared control, else None.
        """
        if self.shared is None or name is None:
            self._make(key)
            return True
        with self.shared.lock(name, wait) as ours:
            if ours and not self._take(key, self.shared.folder(name)) and self._make(key):
                self._share(key, self.shared.folder(name))
        return ours

    def _make(self, key: Classifier) -> bool:
        """Train one classifier and keep it. Returns False where labels are too few; then only the reason is kept."""
        store, clock = self.maker.frames.store, self.maker.watch.clock
        self.folder.cells.mkdir(exist_ok=True)
        began = clock()
        checkpoint = self.folder.checkpoint(key)
        self.lead.announce(key, checkpoint)
        finished, network = self.maker.make(key, checkpoint)
        self.earlier[key] = max(0.0, finished.summary.seconds - (clock() - began))
        if network is not None:
            self._save_weights(key, network.state_dict())
        self.folder.finish(key, finished, store.patients, store.records)
        return finished.rows is not None

    def _save_weights(self, key: Classifier, weights: dict[str, Tensor]) -> None:
        _, init, fraction = key
        file = self.folder.classifier(init, fraction)
        file.parent.mkdir(exist_ok=True)
        save_classifier(weights, self._card(init, fraction), file)

    def _card(self, init: str, fraction: float) -> ClassifierCard:
        plan, cohort = self.maker.plan, self.cohort
        encoder, prepared = plan.encoder, cohort.evaluate
        return ClassifierCard(
            protocol=plan.protocol.offer.name,
            init=init,
            fraction=fraction,
            dataset=plan.dataset.offer.name,
            encoder=encoder.encoder.offer.name,
            options=plain(encoder.encoder.options),
            input_channels=encoder.inputs,
            frame_samples=plan.framing.frame_samples,
            embedding_dim=encoder.embedding_dim,
            frame_rate=prepared.frame_rate or prepared.stretched_rate,
            channels=cohort.channels,
            recorded=prepared.channels,
            unit=prepared.unit,
            modality=plan.dataset.offer.modality,
            normalise=plan.data.normalise,
            constant=plan.data.constant,
            framing=plan.framing,
            task=plan.task,
            split_hash=cohort.split.hash,
            encoder_sha256=encoder.sha256,
            settings=plan.tables(),
            licence=plan.dataset.offer.licence,
            versions=self.versions,
            command=COMMAND.get(),
            date=now(),
        )

    def _take(self, key: Classifier, control: EvaluationFolder) -> bool:
        """Copy a shared control if it exists. Its weights get the card of this evaluation."""
        try:
            finished = control.finished(key)
            if finished is None:
                return False
            weights = control.classifier(key[1], key[2])
            if self._protocol.trains(key):
                self._save_weights(key, read_tensors(weights)[0])
        except RunFolderError as problem:
            self.show.warn(f"{problem} It is made again.")
            return False
        self.folder.take_over(key, control)
        self.kept[key] = finished
        self.show.say(f"{self._protocol.say(key)}: taken from {control.path}")
        return True

    def _share(self, key: Classifier, control: EvaluationFolder) -> None:
        """Copy a control to the shared folder: its weights first, its summary last."""
        source, target = (one.classifier(key[1], key[2]) for one in (self.folder, control))
        try:
            if self._protocol.trains(key):
                target.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(target, source.read_bytes())
            control.take_over(key, self.folder)
        except OSError as problem:  # not fatal: this evaluation has its own copy
            self.show.warn(f"The control could not be kept in {control.path}: {problem.strerror or problem}.")
