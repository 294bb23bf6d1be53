"""Times of kernels, as they are told."""

from __future__ import annotations

from captured_step import longest_first


def test_kernels_whose_names_begin_alike_are_added_up():
    """Names of templates are long, and those of two kernels often differ behind their first 60 characters."""
    common = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor"
    spent = [("pack_kernel", 3.6), (f"{common}_add<float>", 2.0), (f"{common}_mul<float>", 2.504), ("Memset", 0.0)]
    assert longest_first(spent) == {common[:60]: 4.5, "pack_kernel": 3.6}
