"""Messages of core name arguments; on the console they are the flags of the command, or `-o`."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import click
import pytest

import clocs_core
from clocs_core.cli.wording import as_flags, flags_of

FLAGS = frozenset({"C", "batch_size", "channels", "device", "out", "plugin", "sampling_rate", "unseen_channels"})


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Try `batch_size=8`.", "Try `--batch-size 8`."),
        ("use `device='cpu'` or `device=\"auto\"`", "use `--device cpu` or `--device auto`"),
        ("give it: `sampling_rate=HZ`.", "give it: `--sampling-rate HZ`."),
        ("another folder with `out=...`", "another folder with `--out …`"),
        ("such as `channels=['left', 'right']`", "such as `--channels left,right`"),
        ("such as `channels=('left', 'right')`", "such as `--channels left,right`"),
        ("add `channels=['II']`", "add `--channels II`"),
        ("add `unseen_channels=True`.", "add `--unseen-channels`."),
        ("give `C=1`, not `evaluate.C='auto'`", "give `--C 1`, not `--C auto`"),
    ],
)
def test_an_argument_that_the_command_has_is_its_flag(text, shown):
    assert as_flags(text, FLAGS) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("shorter frames (`frame_samples=...`)", "shorter frames (`-o frame_samples=…`)"),
        ("trained with `normalise='min-max'`", "trained with `-o normalise=min-max`"),
        ("with `perturbations=['flip_x', 'noise']`", "with `-o perturbations=flip_x,noise`"),
        ("with `exact=True`", "with `-o exact=True`"),
        ("`batch_size=8` and `temperature=0.1`", "`--batch-size 8` and `-o temperature=0.1`"),
        ("write `loss.temperature=...`", "write `-o loss.temperature=…`"),
        ("write `data.channels=['II', 'V2']`", "write `--channels II,V2`"),
    ],
)
def test_an_argument_without_a_flag_is_an_option(text, shown):
    assert as_flags(text, FLAGS) == shown


def test_the_method_is_asked_for_by_another_flag():
    """Python calls it a method; the command has called it --plugin from the beginning."""
    assert as_flags("A run needs a method (`method=NAME`).", FLAGS) == "A run needs a method (`--plugin NAME`)."
    assert as_flags("name `method=NAME`", frozenset()) == "name `-o method=NAME`"


def test_a_word_in_backticks_is_a_flag_only_where_the_command_has_it():
    assert as_flags("leave out `channels`: it finds them", FLAGS) == "leave out `--channels`: it finds them"
    assert as_flags("`embed` cuts a recording; leave out `channels`", frozenset()) == (
        "`embed` cuts a recording; leave out `channels`"
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "No dataset 'mnay'. Did you mean 'many'?",
        "Go on with it: `clocs run --resume runs/first`.",
        "`clocs evaluate RUN --protocol finetune` trains one.",
        "train.epochs: expected a whole number, got batch_size=8.",
        "`pip install 'clocs[onnx]'`",
        "`Task` has no field `N`",
        "frames as `about.channels` names them, in `encoder.safetensors`",
    ],
)
def test_a_text_without_arguments_is_left_as_it_is(text):
    assert as_flags(text, FLAGS) == text


def test_the_flags_of_a_command_are_its_long_options_by_their_python_names():
    @click.command()
    @click.argument("folder")
    @click.option("--batch-size")
    @click.option("--plugin", "--method", "method")
    @click.option("--color/--no-color")
    @click.option("-o", "--option", "assignments", multiple=True)
    @click.option("-q", "quiet")
    def command(**_given):
        """Do nothing."""

    assert flags_of(command) == {"batch_size", "plugin", "method", "color", "no_color", "option"}
    assert flags_of(None) == frozenset()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Give a folder that `pretrain` made.", "Give a folder that `clocs run` made."),
        ("Give folders that `pretrain` or `evaluate` made", "Give folders that `clocs run` or `clocs evaluate` made"),
        ("Go on with it: `pretrain(..., out='runs/a b')`.", "Go on with it: `clocs run --resume runs/a b`."),
        (
            "`evaluate(..., protocol='finetune')` trains one",
            "`clocs evaluate RUN --protocol finetune` trains one",
        ),
    ],
)
def test_a_function_of_python_is_its_command(text, shown):
    assert as_flags(text, FLAGS) == shown


# Modules that write messages for Python and the command line alike.
SHARED = ("artifacts", "plan", "train", "evaluation", "inference", "api")


def test_messages_of_core_name_functions_and_not_commands():
    """Whoever calls clocs from Python has no use for a flag; this module turns functions into commands."""
    root = Path(clocs_core.__file__).parent
    named = [
        f"{path.relative_to(root)}: {text.value}"
        for folder in SHARED
        for path in sorted((root / folder).rglob("*.py"))
        for raised in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(raised, ast.Raise)
        for text in ast.walk(raised)
        if isinstance(text, ast.Constant) and isinstance(text.value, str) and re.search(r"clocs (run|eval)", text.value)
    ]
    assert named == []
