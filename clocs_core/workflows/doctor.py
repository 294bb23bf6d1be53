"""Look at this machine: versions, devices, memory, disk, plugins, data sets and optional formats.

Every finding says what there is, and what to do where something is missing.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import attrs

from clocs_core.data.signal_file import FORMATS
from clocs_core.files import show_bytes
from clocs_core.plugins.session import Session
from clocs_core.settings.places import data_root, dataset_folder

_PACKAGES = ("clocs", "torch", "numpy", "scipy", "scikit-learn", "pandas", "wfdb")
_EXTRAS = {"parquet": ("pyarrow", "recordings in parquet files"), "onnx": ("onnx", "`clocs export`")}
_LITTLE = 5 * 10**9  # bytes of disk below which a warning is due: frames of a middling data set


@attrs.frozen
class Finding:
    """One fact about this machine. state: `ok`; `missing`, which something optional needs; or `broken`."""

    topic: str
    name: str
    found: str
    state: Literal["ok", "missing", "broken"] = "ok"
    advice: str = ""


def examine(session: Session, root: str | Path | None = None) -> tuple[Finding, ...]:
    """Return all findings, by topic. root: the data root, where another than the usual one is meant."""
    return (
        *_versions(),
        *_devices(),
        *_room(data_root(root)),
        *_plugins(session),
        *_datasets(session, data_root(root)),
        *_formats(),
    )


def _versions() -> Iterator[Finding]:
    yield Finding("versions", "python", f"{platform.python_version()}, {platform.system()} {platform.machine()}")
    for package in _PACKAGES:
        try:
            yield Finding("versions", package, version(package))
        except PackageNotFoundError:
            yield Finding("versions", package, "not installed", "broken", f"pip install {package}")


def _devices() -> Iterator[Finding]:
    import torch

    from clocs_core.train.gpu_kernels import missing_for_triton

    yield Finding("compute", "processor", f"{os.cpu_count()} cores, {torch.get_num_threads()} threads of torch")
    if not torch.cuda.is_available():
        why = "this torch is built without CUDA" if torch.version.cuda is None else "no NVIDIA GPU or driver is found"
        yield Finding("compute", "gpu", why, "missing", "training runs on the processor; a GPU is many times quicker")
    for number in range(torch.cuda.device_count()):
        about = torch.cuda.get_device_properties(number)
        size = show_bytes(about.total_memory)
        yield Finding("compute", f"gpu {number}", f"{about.name}, {size}, capability {about.major}.{about.minor}")
        lacking = missing_for_triton(torch.device("cuda", number))
        advice = "losses and encoders run without their fused kernels" if lacking else ""
        yield Finding("compute", "triton kernels", lacking or "run", "missing" if lacking else "ok", advice)
    yield _package("compute", "triton", "triton", "fused", "the fused kernels on a GPU")
    compiler = os.environ.get("CC") or next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), "")
    advice = "" if compiler else "Triton needs one: install gcc or clang"
    yield Finding("compute", "C compiler", compiler or "none", "ok" if compiler else "missing", advice)


def _room(root: Path) -> Iterator[Finding]:
    total, free = _memory()
    yield Finding("room", "memory", f"{show_bytes(total)}, {show_bytes(free)} free" if total else "unknown")
    for name, place in (("data root", root), ("this folder", Path.cwd())):
        above = next(one for one in (place.absolute(), *place.absolute().parents) if one.exists())
        left = shutil.disk_usage(above).free
        found = f"{place}: {show_bytes(left)} free"
        if not os.access(above, os.W_OK):
            yield Finding(
                "room", name, f"{found}, not writable", "broken", "choose another with CLOCS_DATA or --data-root"
            )
        elif left < _LITTLE:
            yield Finding("room", name, found, "missing", "prepared frames may need more")
        else:
            yield Finding("room", name, found)


def _memory() -> tuple[int, int]:
    """Return the memory of this machine and what is free of it, in bytes; 0 where the system does not say it."""
    try:
        page, total = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_PHYS_PAGES")
        return page * total, page * os.sysconf("SC_AVPHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0, 0


def _plugins(session: Session) -> Iterator[Finding]:
    names = ", ".join(sorted(plugin.name for plugin in session.host.plugins))
    yield Finding("plugins", "loaded", f"{len(session.host.plugins)}: {names}")
    for broken in session.host.broken:
        yield Finding("plugins", broken.name, "not loaded", "broken", broken.problem)
    for shelf in session.catalogue.shelves():
        for problem in shelf.conflicts():
            yield Finding("plugins", "names", "offered twice", "broken", problem)


def _datasets(session: Session, root: Path) -> Iterator[Finding]:
    for item in session.catalogue.datasets:
        dataset, folder = item.offer, dataset_folder(root, item.offer.name)
        if dataset.embedded:
            yield Finding("data", dataset.name, "made on the spot")
        elif folder.is_dir() and any(folder.iterdir()):
            yield Finding("data", dataset.name, str(folder))
        elif dataset.sources:
            yield Finding("data", dataset.name, "not here", "missing", f"clocs data download {dataset.name}")
        else:
            yield Finding("data", dataset.name, "your files", "ok", "point --root at them")


def _formats() -> Iterator[Finding]:
    for one in FORMATS:
        if one.extra:
            yield _package("formats", f"{one.name} ({', '.join(one.endings)})", one.library, one.extra)
        else:
            yield Finding("formats", f"{one.name} ({', '.join(one.endings)})", "read")
    for extra, (module, what) in _EXTRAS.items():
        yield _package("formats", what, module, extra)


def _package(topic: str, name: str, module: str, extra: str, use: str = "") -> Finding:
    """Return whether an optional package is there, without importing it."""
    if find_spec(module) is not None:
        try:
            return Finding(topic, name, f"{module} {version(module)}")
        except PackageNotFoundError:
            return Finding(topic, name, module)
    advice = f"pip install 'clocs[{extra}]'" + (f", for {use}" if use else "")
    return Finding(topic, name, f"{module} is not installed", "missing", advice)
