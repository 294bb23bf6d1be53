"""Component losses are added up on the device, in place, and read once per epoch."""

from __future__ import annotations

import pytest
import torch

from clocs_core.errors import PluginError
from clocs_core.train.components import Components


def test_means_count_every_instance_once_and_begin_anew_at_the_same_memory():
    """Captured steps write to fixed addresses."""
    made = Components()
    made.add({"pull": torch.tensor(2.0, requires_grad=True), "push": torch.tensor(1.0)}, 3)
    made.add({"pull": torch.tensor(6.0), "push": torch.tensor(0.0)}, 1)
    assert dict(zip(made.sums, map(float, made.means(4)), strict=True)) == {"pull": 3.0, "push": 0.75}
    held = {name: total.data_ptr() for name, total in made.sums.items()}
    made.begin()
    made.add({"pull": torch.tensor(5.0)}, 2)
    assert [float(one) for one in made.means(2)] == [5.0, 0.0]
    assert {name: total.data_ptr() for name, total in made.sums.items()} == held
    assert not any(total.requires_grad for total in made.sums.values())


@pytest.mark.parametrize(("value", "said"), [(0.5, "as 0.5;"), (torch.zeros(2), r"as a tensor of shape \(2,\);")])
def test_anything_but_a_single_number_on_the_device_is_refused(value, said):
    with pytest.raises(PluginError, match=r"component 'pull' of its loss " + said):
        Components().add({"pull": value}, 1)
