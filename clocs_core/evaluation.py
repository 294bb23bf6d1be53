"""The story of `clocs evaluate` on one page: prepare, train a classifier per init and share of labels, score, report.

Every classifier that is finished is kept, so that an evaluation that was killed goes on with the next one. Those that
owe nothing to a run are shared with other evaluations, where a folder for them is given.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import attrs
import torch

from clocs_core.data import splits
from clocs_core.data.audit import Audit, certified_audit
from clocs_core.data.material import Material, get_material
from clocs_core.data.records import DropReport, Part
from clocs_core.environment import environment
from clocs_core.errors import DataError, RunFolderError, SettingsError
from clocs_core.evaluate.bench import Bench, build_bench
from clocs_core.evaluate.cells import Cell, CellMaker, Watch, keys_of
from clocs_core.evaluate.classifierfile import save_classifier
from clocs_core.evaluate.controls import control_facts, control_name, is_control
from clocs_core.evaluate.downstream import Downstream, refuse_other_channels
from clocs_core.evaluate.predictionfile import Classifier, save_predictions
from clocs_core.evaluate.pretrained import RANDOM
from clocs_core.evaluate.protocols import Evaluation, Scoring, score_predictions
from clocs_core.evaluationfolder import Controls, EvaluationFolder, Finished, open_controls, open_evaluation
from clocs_core.experiment import Display
from clocs_core.extend.host import Host
from clocs_core.files import write_atomically
from clocs_core.heard import hear_warnings
from clocs_core.report.compose import summarise_split
from clocs_core.report.evaluated import CellSummary, Curve, EncoderSummary, EvaluationReport
from clocs_core.train.assemble import choose_device, choose_steps
from clocs_core.train.checkpoint import read_tensors

__all__ = ["evaluate_encoder"]

Clock = Callable[[], float]


def evaluate_encoder(
    asked: Downstream,
    path: Path,
    host: Host,
    show: Display,
    workers: int,
    clock: Clock,
    controls: Path | None = None,
) -> EvaluationReport:
    """Evaluate an encoder beside its controls into the folder `path`, or go on where it stands, or read what it says.

    The folder is made once the recordings are known to serve, so that a mistake leaves nothing behind.
    controls: a folder that evaluations share: controls that are there are taken, others are made and left there. The
    report is the same either way.
    """
    tables, began = asked.tables(), clock()
    if EvaluationFolder(path).report.exists():
        report = open_evaluation(path, tables).read_report()
        show.say(f"{path} is finished; this is what it found")
        return report
    device = choose_device(asked.asked.device)
    choose_steps(asked.asked.step, device, show.warn)  # a step that cannot be had is said before anything is read
    show.stage("preparing recordings")
    material = get_material(asked.recordings, asked.framing, asked.framing, workers, show.tick)
    asked = attrs.evolve(asked, task=material.task, data=attrs.evolve(asked.data, channels=material.channels))
    scoring, bench = _scoring(asked), _bench(asked, material, device)
    leaks = certified_audit(material.evaluate, material.split)
    show.say(_found(asked, material, bench))
    notes = _notes(asked, material, leaks)
    for note in (*material.listing.notes, leaks.sentence(), *notes):
        show.say(note)
    shared = None if controls is None else open_controls(controls)
    folder, prepared = open_evaluation(path, tables), clock()
    versions = environment(device, host)
    with folder.lock(), hear_warnings(show.warn):
        _keep_split(folder, material)
        watch = Watch(clock, show.tick, lambda done: show.epoch(done, asked.finetune.epochs), show.warn)
        maker = CellMaker(asked, bench, scoring, device, watch)
        finished = _Workshop(maker, material, versions, folder, shared, show).finish_all()
        predicted = {key: cell.rows for key, cell in finished.items() if cell.rows is not None}
        trained = clock()
        show.stage("scoring")
        evaluation = score_predictions(predicted, RANDOM, scoring, show.tick)
        if predicted:
            save_predictions(predicted, *_names(bench, asked.evaluate.part), folder.predictions)
        report = attrs.evolve(
            _report(asked, material, bench, finished, evaluation, leaks, versions),
            curves=_curves(finished, scoring),
            settings=tables,
            notes=_unique((*notes, *evaluation.notes, *(n for cell in finished.values() for n in cell.summary.notes))),
            seconds={"prepare": prepared - began, "train": trained - prepared, "score": clock() - trained},
        )
        folder.finish_all(report)
    return report


def _keep_split(folder: EvaluationFolder, material: Material) -> None:
    """Write who is in which part. Raises RunFolderError where the folder was begun with other patients.

    A download may have gone on meanwhile; classifiers of before and after would be scored on different rows.
    """
    split = splits.to_json(material.split)
    if folder.split.exists() and folder.split.read_text(encoding="utf-8") != split:
        raise RunFolderError(
            f"The recordings have changed since {folder.path} was begun: other patients are in its parts. Remove it, "
            "or choose another place with `--out`."
        )
    write_atomically(folder.split, split)


def _unique(notes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(notes))


@attrs.frozen(eq=False)
class _Workshop:
    """Where the classifiers of one evaluation are made, or taken from those that evaluations share."""

    maker: CellMaker
    material: Material
    versions: dict[str, str]
    folder: EvaluationFolder
    shared: Controls | None
    show: Display

    def finish_all(self) -> dict[Classifier, Finished]:
        """Make what is not finished, then read everything back from its file, in the order of the report.

        So a score does not depend, to the last bit, on whether its evaluation was interrupted.
        """
        keys = keys_of(self.maker.asked)
        missing = [key for key in keys if self.folder.finished(key) is None]
        if len(missing) < len(keys):
            self.show.say(f"going on: {len(keys) - len(missing)} of {len(keys)} classifiers are finished")
        busy: list[Classifier] = []
        # By init, so that each encoder embeds once; controls last, for another process may be at them.
        for number, key in enumerate(sorted(missing, key=lambda key: (is_control(key), key[1])), start=1):
            self.show.stage(f"{_say(key)} ({number} of {len(missing)})")
            if not self._finish(key, wait=False):
                busy.append(key)
        for number, key in enumerate(busy, start=1):
            self.show.stage(f"waiting for another process: {_say(key)} ({number} of {len(busy)})")
            self._finish(key, wait=True)
        return {key: cell for key in keys if (cell := self.folder.finished(key)) is not None}

    def _finish(self, key: Classifier, wait: bool) -> bool:
        """Finish one classifier. False where another process is making it for all, and is not to be waited for."""
        if self.shared is None or not is_control(key):
            self._make(key)
            return True
        name = control_name(control_facts(key, self.maker.asked, self.material, self.maker.bench, self.versions))
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
            cell = self.maker.make(key, self.folder.checkpoint(key))
        except DataError as problem:  # the other shares are worth keeping
            summary = attrs.evolve(summary, notes=(f"There is no score at F = {fraction:g}: {problem}",))
            self.folder.finish(key, Finished(summary), store.patients, store.records)
            return False
        if cell.network is not None:
            self._save_weights(key, cell.network.state_dict())
        summary = _with_numbers(summary, cell, clock() - began)
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
            if control.finished(key) is None:
                return False
            weights = control.classifier(key[1], key[2])
            if key[0] == "finetune":
                self._save_weights(key, read_tensors(weights)[0])
        except RunFolderError as problem:
            self.show.warn(f"{problem} It is made again.")
            return False
        self.folder.take_over(key, control)
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


def _with_numbers(summary: CellSummary, cell: Cell, seconds: float) -> CellSummary:
    return attrs.evolve(
        summary,
        epochs=cell.progress.epoch,
        best_epoch=cell.progress.best_epoch,
        steps=cell.steps,
        frames=cell.frames,
        patients=cell.patients,
        seconds=seconds,
        notes=cell.predictions.notes,
    )


def _scoring(asked: Downstream) -> Scoring:
    name = asked.dataset.offer.name
    scoring = Scoring(asked.task, name, asked.metrics, asked.evaluate, asked.data.split_seed)
    if not scoring.fitting:
        raise SettingsError(scoring.no_metric())
    return scoring


def _bench(asked: Downstream, material: Material, device: torch.device) -> Bench:
    refuse_other_channels(asked.encoder, material.channels)
    needed: tuple[Part, ...] = ("train", asked.evaluate.part)
    if asked.asked.protocol == "finetune":
        needed += ("validation",)
    return build_bench(material, bool(asked.encoder.together), asked.data.normalise == "min-max", needed, device)


def _names(bench: Bench, part: Part) -> tuple[list[str], list[str]]:
    """Patients and records of the scored rows, sorted: the numbers of predictions that were read from a file."""
    rows, store = bench.rows_of(part), bench.store
    return sorted({store.patients[n] for n in rows.patient}), sorted({store.records[n] for n in rows.record})


def _report(
    asked: Downstream,
    material: Material,
    bench: Bench,
    finished: dict[Classifier, Finished],
    evaluation: Evaluation,
    leaks: Audit,
    versions: dict[str, str],
) -> EvaluationReport:
    encoder = asked.encoder
    return EvaluationReport(
        protocol=asked.asked.protocol,
        how=asked.sentence(),
        init=encoder.init,
        encoder=EncoderSummary(
            name=encoder.encoder.offer.name,
            dataset=encoder.dataset,
            inputs=encoder.inputs,
            frame_samples=asked.framing.frame_samples,
            embedding_dim=encoder.embedding_dim,
            sha256=encoder.sha256,
        ),
        dataset=asked.dataset.offer.name,
        task=asked.task.name,
        part=asked.evaluate.part,
        seed=asked.asked.seed,
        settings=asked.tables(),
        split=summarise_split(material, bench.frames, leaks),
        environment=versions,
        scores=evaluation.scores,
        comparisons=evaluation.comparisons,
        cells=tuple(cell.summary for cell in finished.values()),
        drops=DropReport.of(material.listing.drops) + material.evaluate.drops,
        form=material.listing.form,
    )


def _curves(finished: dict[Classifier, Finished], scoring: Scoring) -> tuple[Curve, ...]:
    """How each fine-tuning went."""
    metric = scoring.fitting[0].name
    return tuple(
        Curve(protocol=protocol, init=init, label_fraction=fraction, metric=metric, values=cell.curve)
        for (protocol, init, fraction), cell in finished.items()
        if cell.curve
    )


def _notes(asked: Downstream, material: Material, leaks: Audit) -> tuple[str, ...]:
    """What a reader must know before any number."""
    notes = [*_seen_before(asked, material)]
    encoder, here = asked.encoder, asked.data.normalise
    if encoder.weights and encoder.normalise != here:
        notes.append(
            f"The encoder was pre-trained with normalise={encoder.normalise} and is evaluated with normalise={here}; "
            f"`-o normalise={encoder.normalise}` keeps to the first."
        )
    if asked.evaluate.part == "validation":
        notes.append("Scores are of the validation patients, on whom choices are made: they are no test.")
    if leaks.twins:
        first = leaks.twins[0]
        notes.append(
            f"{len(leaks.twins)} pairs of recordings in different parts share a signal, such as {first.record} "
            f"({first.part}) and {first.other} ({first.other_part}): scores may be too good."
        )
    return tuple(notes)


def _seen_before(asked: Downstream, material: Material) -> tuple[str, ...]:
    """Whether patients that are scored were among those that the encoder was trained on."""
    encoder, part = asked.encoder, asked.evaluate.part
    if encoder.dataset != asked.dataset.offer.name or encoder.split_hash == material.split.hash:
        return ()
    if encoder.split is None:
        return ("The split is another one than the encoder's: it may have been trained on patients that are scored.",)
    seen = {*encoder.split.patients("train"), *encoder.split.patients("validation")}
    mine = material.split.patients(part)
    both = len(seen & set(mine))
    if not both:
        return ()
    return (
        f"{both} of the {len(mine)} {part} patients are among those that the encoder was pre-trained on: scores are "
        f"too good. Its own split is split_seed={encoder.split.seed}.",
    )


def _found(asked: Downstream, material: Material, bench: Bench) -> str:
    counts = " / ".join(f"{n:,}" for n in material.split.counts().values())
    frames = " / ".join(f"{len(some):,}" for some in bench.parts.values())
    drops = DropReport.of(material.listing.drops) + material.evaluate.drops
    return (
        f"{asked.dataset.offer.name}: {len(material.listing.entries):,} recordings of {len(material.split.parts):,} "
        f"patients, {counts} to train / validate / test; labelled frames {frames}; {drops.sentence()}"
    )
