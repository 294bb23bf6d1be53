"""HDF5 files: arrays and their facts, read by window; nothing outside the file is opened, no bomb is unpacked."""

from __future__ import annotations

import h5py
import numpy as np
import pytest
from made_files import wave, write_hdf5

from clocs_core.data.array_file import open_array_file
from clocs_core.data.signal_file import open_recording, read_signal_file
from clocs_core.errors import DataError


def test_a_recording_with_its_facts_as_attributes(tmp_path):
    samples = wave(500)
    path = write_hdf5(tmp_path / "a.h5", samples, 500, "p7")
    held = open_recording(path)
    assert (held.channels, held.unit, held.sampling_rate, held.patient) == (("I", "II"), "mV", 500.0, "p7")
    assert np.array_equal(held.read(0, held.length).samples, samples.astype(np.float32))
    assert np.array_equal(read_signal_file(path, start=10, stop=30).samples, samples.astype(np.float32)[:, 10:30])


def test_facts_may_lie_beside_the_samples_in_a_group(tmp_path):
    with h5py.File(tmp_path / "a.hdf5", "w") as file:
        group = file.create_group("visit")
        group["signal"] = wave(100).T.astype(np.float16)  # (sample, channel)
        group["fs"], group["leads"], group["patient_id"] = 100, ["II", "V5"], "anna"
    held = open_recording(tmp_path / "a.hdf5")
    assert (held.channels, held.sampling_rate, held.patient, held.length) == (("II", "V5"), 100.0, "anna", 1000)
    assert held.read(5, 8).samples.shape == (2, 3)


def test_of_many_recordings_one_is_read(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("tracings", data=np.arange(240.0).reshape(4, 20, 3), chunks=(1, 20, 3), compression="gzip")
        file["exam_id"] = [7, 8, 9, 0]
    found = open_array_file(tmp_path / "a.h5", ("exam_id",))
    assert found.signals == ("tracings",)
    assert np.array_equal(found.arrays["tracings"].take((2, slice(None), slice(None)))[0], [120, 121, 122])
    assert found.arrays["exam_id"].values() == [7, 8, 9, 0]


def test_nothing_outside_the_file_is_opened(tmp_path):
    np.arange(100, dtype="<f4").tofile(tmp_path / "secret.bin")
    write_hdf5(tmp_path / "other.h5", wave(50), 50)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = h5py.ExternalLink("other.h5", "/ecg")
        file["y"] = h5py.SoftLink("/x")
    with pytest.raises(DataError, match="has no array of samples"):
        open_recording(tmp_path / "a.h5")
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file.create_dataset("x", (100,), "<f4", external=[(str(tmp_path / "secret.bin"), 0, 400)])
    with pytest.raises(DataError, match="lies in other files, which are not opened"):
        open_recording(tmp_path / "b.h5")
    layout = h5py.VirtualLayout((2, 500), "f4")
    layout[:] = h5py.VirtualSource(tmp_path / "other.h5", "ecg", (2, 500))
    with h5py.File(tmp_path / "c.h5", "w") as file:
        file.create_virtual_dataset("x", layout)
    with pytest.raises(DataError, match="lies in other files"):
        open_recording(tmp_path / "c.h5")


def test_a_small_file_that_claims_gigabytes_is_refused(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", (1 << 20, 1 << 14), "f8", chunks=(1, 64))
    with pytest.raises(DataError, match="far more than a file of"):
        open_recording(tmp_path / "a.h5")


def test_a_heap_that_would_never_end_is_refused(tmp_path):
    """The library searches the next object of a heap for ever where one has no size."""
    path = write_hdf5(tmp_path / "a.h5", wave(50, 1.0), 50)
    raw = path.read_bytes()
    at = raw.index(b"GCOL") + 16
    path.write_bytes(raw[:at] + bytes(2000) + raw[at + 2000 :])
    with pytest.raises(DataError, match="a heap of texts is damaged"):
        open_recording(path)


def test_another_file_is_one_sentence(tmp_path):
    (tmp_path / "a.h5").write_bytes(b"no HDF5")
    with pytest.raises(DataError, match=r"a\.h5 cannot be read as HDF5: .*signature not found"):
        open_recording(tmp_path / "a.h5")


def test_what_is_no_array_of_numbers_or_texts_hides_nothing(tmp_path):
    """Lists of any length, as of peaks, and references to other arrays."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["ecg"], file["fs"] = np.ones((2, 500)), 250.0
        file.create_dataset("peaks", (3,), dtype=h5py.vlen_dtype(np.int32))[0] = [1, 2]
        file.create_dataset("link", data=file["ecg"].ref, dtype=h5py.ref_dtype)
    held = open_recording(tmp_path / "a.h5")
    assert (held.length, held.sampling_rate) == (500, 250.0)


@pytest.mark.parametrize(("texts", "channels"), [(["I", "aVR"], ("I", "aVR")), (["I", None], None)])
def test_names_of_channels_may_be_cells_of_matlab(tmp_path, texts, channels):
    """A cell is a reference to an array of letters; another one is empty here."""
    path = tmp_path / "a.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in (("ecg", np.ones((500, 2))), ("fs", np.array([[250.0]]))):
            file.create_dataset(name, data=value).attrs["MATLAB_class"] = np.bytes_("double")
        cells = file.create_dataset("channels", (2, 1), dtype=h5py.ref_dtype)
        cells.attrs["MATLAB_class"] = np.bytes_("cell")
        for place, text in enumerate(texts):
            if text is not None:
                letters = np.array([[ord(letter)] for letter in text], dtype=np.uint16)
                one = file.create_dataset(f"#refs#/{place}", data=letters)
                one.attrs["MATLAB_class"] = np.bytes_("char")
                cells[place, 0] = one.ref
    raw = path.read_bytes()
    path.write_bytes(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(512) + raw[512:])
    held = open_recording(path)
    assert (held.channels, held.sampling_rate) == (channels, 250.0)
