"""Seeds: the same purpose draws the same numbers, another purpose others."""

import torch

from clocs_core.seeds import derive, generator


def test_a_seed_depends_on_every_word_of_its_purpose():
    made = {derive(seed, *purpose) for seed in (0, 1) for purpose in ((), ("a",), ("a", 1), ("a", 2), ("b", 1))}
    assert len(made) == 10
    assert all(0 <= seed < 2**63 for seed in made)


def test_a_seed_is_the_same_in_every_process():
    """Written out, since a seed that moves with the interpreter would change every result."""
    assert derive(0, "order", 1) == 8648341903284606430


def test_two_generators_of_one_purpose_draw_alike():
    cpu = torch.device("cpu")
    first, second = (torch.rand(3, generator=generator(cpu, 7, "views", 1)) for _ in range(2))
    assert torch.equal(first, second)
