"""Open a file of arrays by its ending: .npy and .npz, HDF5, MATLAB."""

from __future__ import annotations

from pathlib import Path

from clocs_core.data.numpy_file import open_numpy
from clocs_core.data.stored_arrays import ArrayFile

HDF5 = (".h5", ".hdf5")


def open_array_file(path: Path, beside: tuple[str, ...] = ()) -> ArrayFile:
    """List the arrays of a file of arrays, once per process. beside: names of arrays that are not signals.

    Raises DataError where a header or the facts of the signals are impossible, and OSError.
    """
    kind = path.suffix.lower()
    if kind in HDF5:
        from clocs_core.data.hdf5_file import open_hdf5

        return open_hdf5(path, beside)
    if kind == ".mat":
        from clocs_core.data.matlab_file import open_matlab

        return open_matlab(path, beside)
    return open_numpy(path, beside)
