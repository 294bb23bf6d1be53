"""What docs/use-an-encoder.md shows works as it is shown, the loader of twenty lines without clocs."""

from __future__ import annotations

import builtins
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from fake_encoders import CPU, installed, plan_of, write_encoder

import clocs_core as clocs
from clocs_core.artifacts.encoder import load_encoder

PAGE = (Path(__file__).parents[1] / "docs" / "use-an-encoder.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


def block_with(word):
    (found,) = [block for block in BLOCKS if word in block]
    return found


def without_clocs(name, *more):
    """Imports as ever, but none of ours."""
    assert not name.startswith("clocs"), f"the loader imports {name}"
    return builtins.__import__(name, *more)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("run"), plan_of(installed()))[1]


def test_the_loader_needs_torch_and_safetensors_alone_and_gives_the_same_numbers(file):
    """Whoever has the file and none of this project must get its representations."""
    source = block_with("def load_cnn")
    assert len(source[source.index("def load_cnn") :].splitlines()) <= 20
    names = {"__builtins__": {**vars(builtins), "__import__": without_clocs}}
    exec(source, names)
    network, about = names["load_cnn"](file)
    loaded = load_encoder(file, installed(), CPU)
    signal = torch.rand(5, about["encoder"]["input_channels"], about["encoder"]["frame_samples"])
    with torch.no_grad():
        torch.testing.assert_close(network(signal), loaded.encoder(signal))
    assert about["signal"]["normalise"] == loaded.card.normalise


def test_a_recording_is_embedded_and_frames_are_classified_as_shown(file, capsys):
    rng = np.random.default_rng(0)
    names = {"signal": rng.normal(size=4000), "frames": rng.normal(size=(8, 2500)), "labels": np.arange(8) % 2}
    for word, path in (("encoder.embed", "runs/first/encoder.safetensors"), ("make_pipeline", "runs/first")):
        exec(block_with(word).replace(path, str(file)), names)
    assert names["z"].embedding.shape == (2, 1, 8)
    assert names["z"].start.tolist() == [0, 2000]
    assert capsys.readouterr().out.startswith("cmsc ('II', ")
    assert set(names["model"].predict(names["frames"])) <= {0, 1}


def test_the_refusal_that_is_shown_is_the_one_that_is_raised(file):
    """Whoever meets it looks for these words on the page."""
    (shown,) = re.findall(r"```text\n(.*?)\n```", PAGE, flags=re.DOTALL)
    with pytest.raises(clocs.DataError) as raised:
        clocs.load(file).embed(np.zeros(4000), sampling_rate=400, channels=["MLII"])
    assert str(raised.value) == " ".join(shown.split())
