"""Results for clinicians that tests of pages, files and tables share."""

from __future__ import annotations

import math

from clocs_core.artifacts.clinical import ClassResult, Clinical, Estimate, NumberResult, WorstRecording

SOME = Estimate(0.8, 0.7, 0.9)
NONE = Estimate()
CURVE = ((0.0, 0.25, 1.0), (0.0, 0.75, 1.0))


def class_result(name: str, init: str = "mine", **changes: object) -> ClassResult:
    held: dict[str, object] = {
        "init": init,
        "name": name,
        "rows": 1234,
        "patients": 12,
        "validation_rows": 7,
        "threshold": 0.25,
        "auroc": SOME,
        "auprc": SOME,
        "sensitivity": SOME,
        "specificity": SOME,
        "true_positives": 3,
        "false_negatives": 2,
        "roc": CURVE if init == "mine" else (),
        "precision_recall": CURVE if init == "mine" else (),
        "reliability": ((0.1, 0.9), (0.0, 1.0), (20.0, 2.0)) if init == "mine" else (),
    }
    return ClassResult(**{**held, **changes})  # type: ignore[arg-type]


def clinical(names: tuple[str, ...] = ("a", "b"), **changes: object) -> Clinical:
    """Two classes and a control; the last class is one that nobody has."""
    absent = {"auroc": NONE, "threshold": math.nan, "sensitivity": NONE, "roc": (), "note": "no test recording has it"}
    classes = [class_result(name, init) for init in ("mine", "random") for name in names[:-1]]
    classes += [class_result(names[-1], init, **absent) for init in ("mine", "random")]
    held: dict[str, object] = {
        "protocol": "linear",
        "init": "mine",
        "label_fraction": 1.0,
        "part": "test",
        "level": "record",
        "kind": "one_of",
        "names": names,
        "unit": "",
        "rows": 40,
        "patients": 20,
        "classes": tuple(classes),
        "confusion": tuple(tuple(3 if row == column else 1 for column in names) for row in names),
        "worst": (WorstRecording(record="r1", patient="p1", label="a", predicted="b 0.90, a 0.05", error=0.95),),
    }
    return Clinical(**{**held, **changes})  # type: ignore[arg-type]


def numbers() -> Clinical:
    """A number with its control."""
    mine = NumberResult(
        init="mine", bias=SOME, error=SOME, limits_low=-3.0, limits_high=5.0, true=(60.0, 70.0), predicted=(61.0, 68.0)
    )
    control = NumberResult(init="random", bias=SOME, error=SOME, limits_low=-9.0, limits_high=9.0)
    return clinical(kind="number", unit="years", classes=(), confusion=(), numbers=(mine, control))
