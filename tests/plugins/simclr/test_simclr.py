"""SimCLR as a method: what it is put together from, with and without the released variant."""

from __future__ import annotations

import subprocess
import sys

from clocs_core import Variant
from clocs_plugins.simclr import clocs_methods


def test_simclr_is_put_together_as_in_the_paper():
    """Noisy copies, the paper's encoder, no patients."""
    (method,) = clocs_methods()
    assert (method.name, method.views, method.encoder, method.loss) == ("simclr", "perturbed", "cnn", "nt-xent")
    assert method.objective is None
    assert method.perturbations == ("gaussian",)


def test_the_released_simclr_differs_in_the_encoder_and_in_batchnorm():
    """Its loss was NT-Xent, so that nothing of the loss changes."""
    (method,) = clocs_methods()
    assert list(method.variants) == ["paper", "released"]
    assert all(isinstance(variant, Variant) for variant in method.variants.values())
    assert method.variants["paper"].presets == {}
    assert method.variants["released"].presets == {"encoder": {"layer4_relu": False}, "train": {"per_view": True}}


def test_the_card_imports_no_torch():
    """Listing plugins must stay instant."""
    code = "import sys, clocs_plugins.simclr; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
