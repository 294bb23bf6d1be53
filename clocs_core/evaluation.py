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
from clocs_core.errors import RunFolderError, SettingsError
from clocs_core.evaluate.bench import Bench, build_bench
from clocs_core.evaluate.cells import CellMaker, Watch
from clocs_core.evaluate.downstream import Downstream, refuse_other_channels
from clocs_core.evaluate.predictionfile import Classifier, save_predictions
from clocs_core.evaluate.pretrained import RANDOM
from clocs_core.evaluate.protocols import Evaluation, Scoring, score_predictions
from clocs_core.evaluationfolder import EvaluationFolder, Finished, open_controls, open_evaluation
from clocs_core.extend.host import Host
from clocs_core.files import write_atomically
from clocs_core.heard import hear_warnings
from clocs_core.progress import TrainingDisplay
from clocs_core.report.compose import leak_notes, part_notes, summarise_split
from clocs_core.report.evaluated import Curve, EncoderSummary, EvaluationReport
from clocs_core.settings import Tables
from clocs_core.train.assemble import choose_device, choose_steps
from clocs_core.workshop import Workshop

__all__ = ["evaluate_encoder"]

Clock = Callable[[], float]


def evaluate_encoder(
    asked: Downstream,
    path: Path,
    host: Host,
    show: TrainingDisplay,
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
        return _read_again(open_evaluation(path, tables), show)
    shared = None if controls is None else open_controls(controls)
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
    folder, prepared = open_evaluation(path, tables), clock()
    versions = environment(device, host)
    with folder.lock(), hear_warnings(show.warn) as heard:
        _keep_split(folder, material)
        watch = Watch(clock, show.tick, lambda done: show.epoch(done, asked.finetune.epochs), show.warn)
        maker = CellMaker(asked, bench, scoring, device, watch)
        finished = Workshop(maker, material, versions, folder, shared, show).finish_all()
        predicted = {key: cell.rows for key, cell in finished.items() if cell.rows is not None}
        trained = clock()
        show.stage("scoring")
        evaluation = score_predictions(predicted, RANDOM, scoring, show.tick)
        if predicted:
            save_predictions(predicted, *_names(bench, asked.evaluate.part), folder.predictions)
        of_cells = (note for cell in finished.values() for note in cell.summary.notes)
        report = attrs.evolve(
            _report(asked, tables, material, bench, finished, evaluation, leaks, versions),
            curves=_curves(finished, scoring),
            notes=_unique((*notes, *evaluation.notes, *of_cells, *heard)),
            seconds={"prepare": prepared - began, "train": trained - prepared, "score": clock() - trained},
        )
        folder.finish_all(report)
    return report


def _read_again(folder: EvaluationFolder, show: TrainingDisplay) -> EvaluationReport:
    """What an evaluation that is over has found. A kill may have left what it went on from."""
    folder.clear()
    show.say(f"{folder.path} is finished; this is what it found")
    return folder.read_report()


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


def _scoring(asked: Downstream) -> Scoring:
    name = asked.dataset.offer.name
    scoring = Scoring(asked.task, name, asked.metrics, asked.evaluate, asked.data.split_seed)
    if not scoring.fitting:
        raise SettingsError(scoring.no_metric())
    return scoring


def _bench(asked: Downstream, material: Material, device: torch.device) -> Bench:
    refuse_other_channels(asked.encoder.together, material.channels)
    needed: tuple[Part, ...] = ("train", asked.evaluate.part)
    if asked.asked.protocol == "finetune":
        needed += ("validation",)
    return build_bench(material, bool(asked.encoder.together), asked.data.normalise == "min-max", needed, device)


def _names(bench: Bench, part: Part) -> tuple[list[str], list[str]]:
    """Patients and records of the scored rows, sorted: the numbers of predictions that were read from a file."""
    rows, store = bench.rows[part], bench.store
    return sorted({store.patients[n] for n in rows.patient}), sorted({store.records[n] for n in rows.record})


def _report(
    asked: Downstream,
    tables: Tables,
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
        settings=tables,
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
    return (*notes, *part_notes(asked.evaluate.part), *leak_notes(leaks))


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
