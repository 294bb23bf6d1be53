"""The kernels as machine code: all that the fused losses launch, compiled for GPUs that need not be here."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import torch

triton = pytest.importorskip("triton", reason="Triton is not installed: `pip install 'clocs[fused]'`")

from triton.backends.compiler import GPUTarget  # noqa: E402  not before it is known to be there
from triton.compiler import ASTSource  # noqa: E402

from clocs_plugins.contrastive_losses import fused, launches  # noqa: E402
from clocs_plugins.contrastive_losses.fused import contrast  # noqa: E402
from clocs_plugins.contrastive_losses.fused_rows import Kind, share_of_rows  # noqa: E402
from clocs_plugins.contrastive_losses.launches import NT_XENT, PAPER  # noqa: E402
from clocs_plugins.contrastive_losses.shapes import choose_shapes  # noqa: E402

KERNELS = [name for name in dir(launches) if name.endswith("_kernel")]
TYPES = {torch.float32: "*fp32", torch.float16: "*fp16", torch.int32: "*i32", torch.int64: "*i64"}
TENSOR_CORES = {80: "mma.sync", 90: "wgmma.mma", 100: "tcgen05.mma"}
SHARED = {80: 99, 90: 227, 100: 227}  # KB a program; a GPU of Ampere for desktops has no more, so 80 is held to it
ROOMY_TILES = {views: choose_shapes(256, 128, views, two=False, alone=False, roomy=True) for views in (2, 8)}
OF_TILES = ("sums_kernel", "own_sums_kernel", "gradient_kernel")


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))


class Recorder:
    """Stands for a kernel and keeps what it would be launched with."""

    def __init__(self, kernel, launches):
        self.kernel, self.launches = kernel, launches

    def __getitem__(self, grid):
        return lambda *arguments, **named: self.launches.append((self.kernel, arguments, named))


class OneOfTwo:
    """The second of two processes; what the first one has is zero."""

    def __init__(self, sizes):
        self.sizes, self.whole, self.own = sizes, sum(sizes), slice(sizes[0], sum(sizes))

    def gather(self, tensor, dim):
        first = list(tensor.shape)
        first[dim] = self.sizes[0]
        return torch.cat([tensor.new_zeros(first), tensor.detach()], dim)


def launched(monkeypatch, views, batch, dim, kind, two, shapes, tau, ranks=None):
    """What a forward and a backward pass would launch; with ranks, in that process."""
    found = []
    with monkeypatch.context() as patch:
        for name in KERNELS:
            patch.setattr(launches, name, Recorder(getattr(launches, name), found))
        patient = None if kind == NT_XENT else torch.arange(batch)
        if ranks is None:
            z = torch.zeros(views, batch, dim, requires_grad=True)
            contrast(z, patient, tau, kind=kind, pairs=1, two=two, shapes=shapes).backward()
        else:
            patch.setattr(fused, "choose_shapes", lambda *size, **more: shapes)
            own = torch.zeros(views, ranks.sizes[1], dim, requires_grad=True)
            share_of_rows(own, patient, tau, Kind(kind, 1, two), ranks).backward()
    return found


def compile_for(arch, kernel, arguments, named):
    """Compile a launch as Triton would at run time: pointers and sizes that 16 divides are known to be so."""
    named = {**named, "EARLY": arch >= 90, "launch_pdl": arch >= 90}  # it was recorded on a CPU
    names = [parameter.name for parameter in kernel.params]
    values = dict(zip(names, arguments, strict=False)) | {key: value for key, value in named.items() if key in names}
    signature, constants, known = {}, {}, {}
    for place, parameter in enumerate(kernel.params):
        value, free = values[parameter.name], parameter.do_not_specialize
        if parameter.is_constexpr or value is None or (isinstance(value, int) and value == 1 and not free):
            signature[parameter.name], constants[(place,)] = "constexpr", value
        elif isinstance(value, torch.Tensor):
            signature[parameter.name] = TYPES[value.dtype]
            known[(place,)] = [["tt.divisibility", 16]]
        else:
            signature[parameter.name] = "fp32" if isinstance(value, float) else "i32"
            if isinstance(value, int) and value % 16 == 0 and not free:
                known[(place,)] = [["tt.divisibility", 16]]
    options = {key: value for key, value in named.items() if key not in names}
    source = ASTSource(kernel, signature, constants, known)
    return triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options)


def stack_bytes(made, folder):
    """What does not fit into registers lies on the stack; the disassembler that Triton brings tells."""
    (folder / "kernel.cubin").write_bytes(made.asm["cubin"])
    program = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    done = subprocess.run([program, "-res-usage", folder / "kernel.cubin"], capture_output=True, text=True, check=True)
    return int(re.search(r"STACK:(\d+)", done.stdout)[1])


def check(arch, launch, folder, spill=0, cores=""):
    """It compiles, fits into a program's memory and registers, uses tensor cores, and loads while it computes."""
    made, name = compile_for(arch, *launch), launch[0].__name__
    assert made.metadata.shared <= SHARED[arch] * 1024, (name, launch[2])
    assert stack_bytes(made, folder) <= spill, (name, launch[2])
    if name in OF_TILES:
        assert (cores or TENSOR_CORES[arch]) in made.asm["ptx"], (name, launch[2])
        assert launch[2]["num_stages"] == 1 or "cp.async" in made.asm["ptx"], (name, launch[2])


@pytest.mark.parametrize("kind", [PAPER, NT_XENT], ids=["patient-nce", "nt-xent"])
@pytest.mark.slow
def test_two_views_of_256_compile_for_hopper(kind, monkeypatch, tmp_path):
    """The paper's batch: tensor cores are used, loads run ahead, and everything fits into registers."""
    shapes = choose_shapes(256, 128, 2, two=False, alone=kind == NT_XENT, roomy=True)
    found = launched(monkeypatch, 2, 256, 128, kind, False, shapes, 0.1)
    of_pairs = {
        PAPER: ["pack_kernel", "others_kernel", "sums_kernel", "loss_kernel", "gradient_kernel"],
        NT_XENT: ["pack_kernel", "sums_kernel", "loss_kernel", "add_kernel", "gradient_kernel"],  # three pairs of views
    }
    assert [kernel.__name__ for kernel, _, _ in found] == of_pairs[kind]
    for launch in found:
        name, rows = launch[0].__name__, launch[2].get("ROWS", 64)
        cores = "mma.sync" if rows < 64 else ""  # Hopper's own instruction takes 64 rows; tiles of 16 are of few rows
        check(90, launch, tmp_path, spill=24 if "loss" in name else 0, cores=cores)


def test_a_temperature_that_learns_costs_one_more_launch(monkeypatch):
    tau = torch.tensor(0.1, requires_grad=True)
    found = launched(monkeypatch, 2, 256, 128, PAPER, False, ROOMY_TILES[2], tau)
    assert [kernel.__name__ for kernel, _, _ in found][-2:] == ["gradient_kernel", "add_kernel"]


def test_sums_of_many_programs_cost_one_more_launch(monkeypatch):
    """Of eight views there are too many tiles for one program to have all of a row."""
    found = launched(monkeypatch, 8, 256, 128, PAPER, False, ROOMY_TILES[8], 0.1)
    assert [kernel.__name__ for kernel, _, _ in found][-2:] == ["gradient_kernel", "gather_kernel"]


ROOMY = [(256, 2), (250, 8), (4096, 2), (4096, 4), (9000, 2)]  # a batch and views for each line of the table


@pytest.mark.slow
@pytest.mark.parametrize("arch", SHARED)
@pytest.mark.parametrize("two", [False, True], ids=["fp16", "near-fp32"])
def test_every_tile_of_the_table_compiles(two, arch, monkeypatch, tmp_path):
    """A tile that needs more than the GPU has fails at its first launch, in the middle of somebody's run.

    Of 512 dimensions in two halves nothing fits into registers, and of 256 not quite: slow, not wrong.
    """
    seen = set()
    for dim in (128, 256, 512):
        for kind in (PAPER, NT_XENT):
            for batch, views in ROOMY if arch >= 90 and dim == 128 and not two else ROOMY[:2]:
                shapes = choose_shapes(batch, dim, views, two=two, alone=kind == NT_XENT, roomy=arch >= 90)
                # Fewer rows with the same remainder: the code is the same, and no launch is run.
                for launch in launched(monkeypatch, views, batch % 64 + 256, dim, kind, two, shapes, 0.1):
                    what = (launch[0].__name__, *sorted(launch[2].items()))
                    if launch[0].__name__ in OF_TILES and what not in seen:
                        seen.add(what)
                        spill = 0 if not two else 64 if dim < 512 else 2048
                        check(arch, launch, tmp_path, spill, "mma" if two or launch[2]["ROWS"] < 64 else "")
    assert len(seen) >= 12


def test_one_of_two_processes_launches_its_own_sums(monkeypatch):
    found = launched(monkeypatch, 2, 256, 128, PAPER, False, ROOMY_TILES[2], 0.1, OneOfTwo((100, 156)))
    names = ["pack_kernel", "others_kernel", "own_sums_kernel", "loss_kernel", "add_kernel", "gradient_kernel"]
    assert [kernel.__name__ for kernel, _, _ in found] == names


@pytest.mark.slow
@pytest.mark.parametrize("kind", [PAPER, NT_XENT], ids=["patient-nce", "nt-xent"])
@pytest.mark.parametrize("two", [False, True], ids=["fp16", "near-fp32"])
def test_the_kernels_of_one_of_two_processes_compile_for_hopper(two, kind, monkeypatch, tmp_path):
    """With the tiles of the table, whose rows begin anywhere."""
    seen = set()
    for batch, views, dim in [(256, 2, 128), (250, 8, 128), (4096, 2, 128), (9000, 2, 128), (256, 2, 256)]:
        shapes = choose_shapes(batch, dim, views, two=two, alone=kind == NT_XENT, roomy=True)
        ranks = OneOfTwo((101, batch % 64 + 155))  # fewer rows with the same remainder, as above
        for launch in launched(monkeypatch, views, ranks.whole, dim, kind, two, shapes, 0.1, ranks):
            what = (launch[0].__name__, *sorted(launch[2].items()))
            if launch[0].__name__ in OF_TILES and what not in seen:
                seen.add(what)
                check(90, launch, tmp_path, 64 if two else 0, "mma" if two or launch[2]["ROWS"] < 64 else "")
    assert {name for name, *_ in seen} == {"own_sums_kernel", "gradient_kernel"}
