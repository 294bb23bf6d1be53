"""The scores of ledgers as one table."""

import csv

import grid_scores
from grid.ledger import Entry, Ledger

from clocs_core.contracts.scores import Score


def entry(seed, method="cmsc", status="done", protocol="finetune/1"):
    about = {
        "dataset": "cardiology",
        "label_fraction": 0.5,
        "metric": "auroc",
        "level": "frame",
        "low": 0.0,
        "high": 1.0,
    }
    scores = (
        Score(protocol="finetune", init=method, value=0.7 + seed / 100, **about),
        Score(protocol="finetune", init="random", value=0.6 + seed / 100, **about),
        Score(protocol="prior", init="random", value=0.5, **about),
    )
    run = {"method": method, "dataset": "ptbxl", "leads": "4", "embedding_dim": 128, "seed": seed, "split_seed": 0}
    settings = {"pretraining": run | {"options": ["epochs=2"]}, "downstream": "cardiology", "protocol": "finetune"}
    settings |= {"part": "test", "options": []}
    return Entry(
        key=f"{method}{seed}",
        protocol=protocol,
        name="",
        seed=seed,
        status=status,
        error="",
        commit="abc",
        finished="",
        seconds=1.0,
        settings=settings,
        folder="",
        label_fractions=(0.5,),
        scores=scores,
    )


def test_each_encoder_has_a_line_a_score_and_the_untrained_one_is_told_once(tmp_path, capsys):
    """Evaluations of two methods score the same untrained encoder; what failed, and pre-trainings, have no score."""
    ledger = Ledger(tmp_path / "ledger.jsonl")
    for line in (entry(0), entry(1), entry(0, "simclr"), entry(2, status="failed"), entry(3, protocol="pretrain/1")):
        ledger.append(line)
    assert grid_scores.main([str(tmp_path), "--out", str(tmp_path / "scores.csv")]) == 0
    with (tmp_path / "scores.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    told = sorted((row["method"], row["pretraining"], row["seed"], row["score"]) for row in rows)
    assert told == [
        ("cmsc epochs=2", "ptbxl", "0", "0.700000"),
        ("cmsc epochs=2", "ptbxl", "1", "0.710000"),
        ("random", "", "0", "0.600000"),
        ("random", "", "1", "0.610000"),
        ("simclr epochs=2", "ptbxl", "0", "0.700000"),
    ]
    assert "5 scores" in capsys.readouterr().out
