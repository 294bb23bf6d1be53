"""The settings that belong to no plugin."""

from __future__ import annotations

import attrs
import pytest

from clocs_core.errors import SettingsError
from clocs_core.settings.options import structure
from clocs_core.settings.sections import DataSettings, FinetuneSettings, RunSettings, ScoringSettings, TrainSettings

CLASSES = {"run": RunSettings, "data": DataSettings, "train": TrainSettings, "evaluate": ScoringSettings}


def test_the_defaults_are_those_of_the_paper() -> None:
    """Batch 256, learning rate 1e-4, E = 128, and early stopping after 15 epochs as in the released code."""
    assert (TrainSettings().batch_size, TrainSettings().learning_rate) == (256, 1e-4)
    assert (RunSettings().embedding_dim, TrainSettings().patience) == (128, 15)
    assert DataSettings().split == "60/20/20"


def test_a_weight_decay_that_nothing_reads_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"^\[train\] weight_decay is that of AdamW: add `optimiser='adamw'`"):
        structure(TrainSettings, {"weight_decay": 0.1}, "train")
    assert TrainSettings(optimiser="adamw", weight_decay=0.1).decay == 0.1
    assert (TrainSettings(optimiser="adamw").decay, TrainSettings().decay) == (0.01, 0.0)


def test_an_optimiser_is_described_in_words() -> None:
    """Reports of fine-tuning have said the first since ever."""
    assert FinetuneSettings().sentence() == "Adam at 0.0001"
    given = FinetuneSettings(optimiser="adamw", learning_rate=0.001, warm_up=0.1, schedule="cosine", clip=2.0)
    assert given.sentence() == (
        "AdamW (weight decay 0.01) at 0.001, after a warm-up over 0.1 of all steps, lowered by half a cosine, "
        "gradients of norm 2 at most"
    )
    assert "over 500 steps" in attrs.evolve(given, warm_up=500).sentence()


def test_fine_tuning_is_trained_with_every_setting_that_it_shares() -> None:
    given = FinetuneSettings(epochs=3, clip=2.0, optimiser="adamw", weight_decay=0.3, warm_up=5, schedule="cosine")
    made = given.for_training()
    for field in attrs.fields(FinetuneSettings):
        if field.name != "layer_decay":
            assert getattr(made, field.name) == getattr(given, field.name)


def test_a_step_is_over_a_whole_contrast_where_that_is_larger_than_a_batch() -> None:
    """What counts steps and what takes them must agree."""
    assert TrainSettings(batch_size=8).together == 8
    assert TrainSettings(batch_size=8, contrast_batch=32).together == 32


@pytest.mark.parametrize(
    ("table", "key", "value", "message"),
    [
        ("train", "batch_size", 0, "`train.batch_size=...`: must be positive, got 0."),
        ("train", "epochs", -1, "`train.epochs=...`: must be positive, got -1."),
        ("train", "learning_rate", 0.0, "`train.learning_rate=...`: must be positive and at most 100, got 0.0."),
        (
            "train",
            "learning_rate",
            float("nan"),
            "`train.learning_rate=...`: must be positive and at most 100, got nan.",
        ),
        ("train", "learning_rate", 1e300, "`train.learning_rate=...`: must be positive and at most 100, got 1e+300."),
        ("train", "warm_up", 1.5, "`train.warm_up=...`: must be a share below 1 or a number of steps, got 1.5."),
        ("train", "warm_up", -1, "`train.warm_up=...`: must be a share below 1 or a number of steps, got -1.0."),
        ("train", "clip", 0, "`train.clip=...`: must be positive, got 0.0."),
        ("train", "optimiser", "sgd", "`train.optimiser=...`: expected one of adam, adamw, got 'sgd'."),
        ("train", "patience", 0, "`train.patience=...`: must be positive, got 0."),
        ("run", "embedding_dim", 0, "`run.embedding_dim=...`: must be positive and at most 65,536, got 0."),
        ("run", "embedding_dim", 10**8, "`run.embedding_dim=...`: must be positive and at most 65,536, got 100000000."),
        ("run", "seed", 2**65, "`run.seed=...`: expected a whole number of at most 64 bits, got a larger one."),
        ("run", "seed", -1, "`run.seed=...`: must not be negative, got -1."),
        ("run", "device", "tpu", "`run.device=...`: expected one of auto, cpu, cuda, got 'tpu'."),
        ("data", "split", "80/20", "`data.split=...`: expected one of 60/20/20, 64/16/20, published, got '80/20'."),
        ("data", "split_seed", -1, "`data.split_seed=...`: must not be negative, got -1."),
        ("data", "normalise", "z", "`data.normalise=...`: expected one of min-max, none, z-score, constant, got 'z'."),
        ("evaluate", "resamples", 0, "`evaluate.resamples=...`: must be positive and at most 1,000,000, got 0."),
        (
            "evaluate",
            "label_fraction",
            [],
            "`evaluate.label_fraction=...`: must be above 0 and at most 1, got nothing.",
        ),
        (
            "evaluate",
            "label_fraction",
            [0.5, 2],
            "`evaluate.label_fraction=...`: must be above 0 and at most 1, got 0.5, 2.0.",
        ),
        (
            "evaluate",
            "label_fraction",
            [0.0],
            "`evaluate.label_fraction=...`: must be above 0 and at most 1, got 0.0.",
        ),
        (
            "evaluate",
            "label_fraction",
            [0.1234561, 0.1234562],
            "[evaluate] label_fraction has a value twice, to six digits: 0.1234561, 0.1234562; give each once.",
        ),
    ],
)
def test_every_rule_is_a_sentence(table: str, key: str, value: object, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        structure(CLASSES[table], {key: value}, table)
    assert str(caught.value) == message


def test_a_run_of_no_epoch_is_refused() -> None:
    """It would report the random encoder under the method's name."""
    with pytest.raises(SettingsError, match="must be positive, got 0"):
        structure(TrainSettings, {"epochs": 0}, "train")


def test_a_long_value_is_cut_in_a_message() -> None:
    with pytest.raises(SettingsError) as caught:
        structure(RunSettings, {"seed": "9" * 5000}, "run")
    assert len(str(caught.value)) < 200
    with pytest.raises(SettingsError, match="a list that is too long to print"):
        structure(RunSettings, {"seed": [1 << 20_000]}, "run")
