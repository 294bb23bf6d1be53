"""Stands in for clocs in tests of the grid: takes 50 ms, and leaves scores that follow from its settings alone.

FAKE_LOG: a file that is told when a folder is begun and ended. FAKE_FAIL: a word; folders with it in their name fail.
FAKE_SECONDS: how long it takes, 0.05 by default. FAKE_PREDICTIONS: also leave predictions.npz. FAKE_OLD: leave no
curves and no histograms, as older versions did.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from pathlib import Path


def main(words: list[str]) -> int:
    if "--together" in words:
        parts = json.loads(words[-1])
        tell(f"together {len(parts)}")
        codes = [run(part) for part in parts if part[0] == "run" or is_trained(part)]
        return max(codes)
    return run(words)


def is_trained(words: list[str]) -> bool:
    return "--random" in words or (Path(words[1]) / "report.json").exists()


def run(words: list[str]) -> int:
    flags = {words[i]: words[i + 1] for i in range(len(words) - 1) if words[i].startswith("-") and words[i] != "-o"}
    options = [words[i + 1] for i in range(len(words) - 1) if words[i] == "-o"]
    folder = Path(flags.get("--resume") or flags["--out"])
    tell(f"begin {folder.name}")
    fail = os.environ.get("FAKE_FAIL")
    if fail and fail in folder.name:
        which = f"{folder.name}: " if "--together" in sys.argv else ""
        sys.stdout.write(f"Error: {which}made to fail.\n")
        return 2
    of_run = words[0] == "evaluate" and "--random" not in words
    if of_run and not is_trained(words):
        sys.stdout.write(f"Error: {words[1]} is not finished.\n")
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    if "--resume" not in flags:
        write(folder / "settings.toml", json.dumps({"flags": flags, "options": options}))
    settings = json.loads((folder / "settings.toml").read_text())
    time.sleep(float(os.environ.get("FAKE_SECONDS", "0.05")))
    before = json.loads((Path(words[1]) / "settings.toml").read_text()) if of_run else settings
    report = trained(settings) if words[0] == "run" else evaluated(settings, before, folder)
    write(folder / "report.json", json.dumps(report))
    tell(f"end {folder.name}")
    return 0


def trained(settings: dict) -> dict:
    method = settings["flags"]["--plugin"]
    far = [
        {"init": init, "intra_mean": number(init, "in"), "inter_mean": 1 + number(init, "out"), "separation": 0.75}
        for init in (method, "random")
    ]
    if not os.environ.get("FAKE_OLD"):
        for one, top in zip(far, (2.0, 3.0), strict=True):
            one |= {"edges": [0.0, top / 2, top], "intra": [6, 2], "inter": [1, 3]}
    about = {"method": method, "task": None, "epochs_run": 3, "best_epoch": 2, "stopped": "all epochs"}
    return report_of(settings, patients=far, **about)


def evaluated(settings: dict, before: dict, folder: Path) -> dict:
    flags = settings["flags"]
    if "--plugin" not in before["flags"]:  # --random
        before = {"flags": {**before["flags"], "--plugin": "random"}, "options": []}
    where = [flags[name] for name in ("--dataset", "--protocol", "--part", "--seed", "--split-seed")]
    trained_by = [before["flags"][name] for name in ("--plugin", "--dataset", "--embedding-dim", "--seed")]
    scores = []
    for share in map(float, flags["--label-fraction"].split(",")):
        inits = {before["flags"]["--plugin"]: number(*trained_by, *before["options"], *where, share)}
        inits["random"] = number("random", before["flags"]["--embedding-dim"], *where, share)
        for init, value in inits.items():
            scores.append(score(flags, flags["--protocol"], init, share, value))
        scores.append(score(flags, "prior", "random", share, 0.5))
    if os.environ.get("FAKE_PREDICTIONS"):
        predictions(folder, flags, before["flags"]["--plugin"])
    about = {"name": "cnn", "dataset": "", "inputs": 1, "frame_samples": 8, "embedding_dim": 8, "sha256": ""}
    report = report_of(settings, scores=scores, encoder=about, init=before["flags"]["--plugin"], how="", task="rhythm")
    report |= {"protocol": flags["--protocol"], "part": flags["--part"]}
    return report if os.environ.get("FAKE_OLD") else report | {"curves": curves(scores)}


def report_of(settings: dict, **more: object) -> dict:
    """What the reports of runs and evaluations share."""
    flags = settings["flags"]
    about = {"schema": 1, "dataset": flags["--dataset"], "seed": int(flags.get("--seed", 0)), "settings": {}}
    return {**about, "split": split(settings), "environment": {"python": "3"}, **more}


def curves(scores: list[dict]) -> list[dict]:
    """Of every fine-tuning, towards its score; the higher the score, the longer it takes."""
    found = []
    for one in scores:
        if one["protocol"] == "finetune":
            epochs = 2 + int(10 * one["value"]) % 4
            values = [
                {"epoch": n, "train_loss": 1 / n, "validation_loss": 1 / n, "validation_score": one["value"] - 0.1 / n}
                for n in range(1, epochs + 1)
            ]
            about = {name: one[name] for name in ("protocol", "init", "label_fraction", "metric")}
            found.append({**about, "values": values})
    return found


def score(flags: dict, protocol: str, init: str, share: float, value: float) -> dict:
    about = {"dataset": flags["--dataset"], "label_fraction": share, "metric": "auroc", "level": "frame"}
    return {"protocol": protocol, "init": init, "value": value, "low": value - 0.1, "high": value + 0.1, **about}


def predictions(folder: Path, flags: dict, method: str) -> None:
    import numpy as np

    rng = np.random.default_rng(0)
    label = np.arange(60) % 2
    arrays = {"patient": np.arange(60).astype(str), "record": np.arange(60).astype(str), "label": label}
    for share in flags["--label-fraction"].split(","):
        for init, sharpness in ((method, 3.0 if method == "cmsc" else 1.0), ("random", 0.0)):
            up = 1 / (1 + np.exp(-(sharpness * (2 * label - 1) + rng.normal(size=60))))
            arrays[f"probability/{flags['--protocol']}/{init}/{float(share):g}"] = np.stack([1 - up, up], axis=1)
    np.savez(folder / "predictions.npz", **arrays)


def split(settings: dict) -> dict:
    seed = int(settings["flags"]["--split-seed"])
    return {
        "hash": hashlib.sha256(str(seed).encode()).hexdigest(),
        "rule": "60/20/20",
        "seed": seed,
        "patients": {"train": 18, "validation": 6, "test": 6},
        "frames": {},
        "records": {},
        "shared_patients": 0,
        "duplicate_signals": 0,
    }


def number(*about: object) -> float:
    """Between 0.5 and 1, by its arguments."""
    text = "\t".join(map(str, about))
    return 0.5 + int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little") / 2**33


def write(path: Path, text: str) -> None:
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_text(text)
    aside.replace(path)


def tell(text: str) -> None:
    if log := os.environ.get("FAKE_LOG"):
        with open(log, "a") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
