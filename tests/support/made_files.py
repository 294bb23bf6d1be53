"""Write small recordings in the field's formats, each by the library of its format, or by hand where there is none."""

from __future__ import annotations

import warnings
from base64 import b64encode
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Wave = NDArray[np.float64]

NAMES = ("I", "II")


def wave(rate: int, seconds: float = 10.0, hertz: float = 1.0, seed: int = 0, channels: int = 2) -> Wave:
    """Return a wave in mV (channel, sample), with noise, within 2 mV."""
    time = np.arange(round(rate * seconds)) / rate
    noise = np.random.default_rng(seed).uniform(-0.1, 0.1, (channels, len(time)))
    return np.stack([np.sin(2 * np.pi * hertz * time) / (1 + place) for place in range(channels)]) + noise


def write_edf(
    path: Path, samples: Wave, rate: int, patient: str = "", names: Sequence[str] = NAMES, units: Sequence[str] = ()
) -> Path:
    """Write EDF+, or BDF+ by the ending, by hand: samples are in mV, and stored in these units, in records of 1 s."""
    kind, size, first = ("BDF", 3, b"\xffBIOSEMI") if path.suffix == ".bdf" else ("EDF", 2, b"0       ")
    largest = 256**size // 2 - 1
    units = units or ["mV"] * len(samples)
    factors = [1000.0 if unit in {"uV", "µV"} else 1.0 for unit in units]
    channels = [
        (name, unit, f"{-2 * factor:g}", f"{2 * factor:g}", str(-largest - 1), str(largest), str(rate))
        for name, unit, factor in zip(names, units, factors, strict=True)
    ]
    channels.append((f"{kind} Annotations", "", "-1", "1", str(-largest - 1), str(largest), "30"))
    count = -(-samples.shape[1] // rate)
    head = 256 * (1 + len(channels))
    about = (f"{patient or 'X'} X X X", "Startdate X X X X", "01.01.26", "00.00.00", head, f"{kind}+C")
    texts = [*zip(about, (80, 80, 8, 8, 8, 44), strict=True), (count, 8), (1, 8), (len(channels), 4)]
    for place, width in ((0, 16), (None, 80), (1, 8), (2, 8), (3, 8), (4, 8), (5, 8), (None, 80), (6, 8), (None, 32)):
        texts += [("" if place is None else channel[place], width) for channel in channels]
    header = first + b"".join(str(text).encode("latin-1").ljust(width) for text, width in texts)
    whole = np.pad(samples, ((0, 0), (0, count * rate - samples.shape[1])))
    levels = np.round((whole + 2) / 4 * (2 * largest + 1) - largest - 1).astype(np.int64)  # (channel, sample)
    with open(path, "wb") as file:
        file.write(header)
        for record in range(count):
            for row in levels[:, record * rate : (record + 1) * rate]:
                file.write(b"".join(int(level).to_bytes(size, "little", signed=True) for level in row))
            file.write(f"+{record}\x14\x14\0".encode().ljust(30 * size, b"\0"))
    return path


def write_hdf5(path: Path, samples: Wave, rate: int, patient: str = "", compression: str | None = "gzip") -> Path:
    """Write one recording, with its facts as attributes."""
    import h5py

    with h5py.File(path, "w") as file:
        held = file.create_dataset("ecg", data=samples.astype(np.float32), compression=compression)
        held.attrs["fs"], held.attrs["units"] = rate, "mV"
        file.attrs["leads"] = list(NAMES)
        if patient:
            file.attrs["patient"] = patient
    return path


def write_matlab(path: Path, samples: Wave, rate: int, patient: str = "") -> Path:
    """Write a structure as MATLAB 5 to 7 do."""
    from scipy.io import savemat

    savemat(path, {"ECG": {"data": samples, "fs": float(rate), "unit": "mV", "patient": patient}}, do_compression=True)
    return path


def write_matlab73(path: Path, samples: Wave, rate: int) -> Path:
    """Write an array as MATLAB 7.3 does: an HDF5 file with turned axes behind a block of its own."""
    import h5py

    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value, kind in (("val", samples.T, "double"), ("fs", [[float(rate)]], "double")):
            file.create_dataset(name, data=value).attrs["MATLAB_class"] = np.bytes_(kind)
        letters = np.array([[ord(letter)] for letter in "mV"], dtype=np.uint16)
        file.create_dataset("unit", data=letters).attrs["MATLAB_class"] = np.bytes_("char")
    raw = path.read_bytes()
    path.write_bytes(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(512) + raw[512:])
    return path


def write_wfdb(path: Path, samples: Wave, rate: int, format_: str = "16") -> Path:
    """Write a header and its signal file."""
    names = list(NAMES[: len(samples)])
    formats, units = [format_] * len(samples), ["mV"] * len(samples)
    with warnings.catch_warnings(action="ignore"):  # the package uses deprecated functions of pandas
        import wfdb

        wfdb.wrsamp(path.stem, rate, units, names, samples.T, fmt=formats, write_dir=str(path.parent))
    return path


def write_dicom(path: Path, samples: Wave, rate: int, patient: str = "p1") -> Path:
    """Write a 12-lead ECG object with a rhythm in µV and a median beat, which is not read."""
    from pydicom.dataset import Dataset, FileMetaDataset
    from pydicom.sequence import Sequence as Items
    from pydicom.uid import ExplicitVRLittleEndian, TwelveLeadECGWaveformStorage, generate_uid

    def group(label: str, part: Wave) -> Dataset:
        one = Dataset()
        one.MultiplexGroupLabel, one.WaveformOriginality = label, "ORIGINAL"
        one.NumberOfWaveformChannels, one.NumberOfWaveformSamples = part.shape
        one.SamplingFrequency, one.WaveformBitsAllocated, one.WaveformSampleInterpretation = rate, 16, "SS"
        one.ChannelDefinitionSequence = Items([_dicom_channel(name) for name in NAMES[: len(part)]])
        one.add_new((0x5400, 0x100A), "OW", np.array([-32768], "<i2").tobytes())  # the padding value
        one.add_new((0x5400, 0x1010), "OW", np.round(part.T * 1000 / 2.5).astype("<i2").tobytes())
        return one

    held = Dataset()
    held.file_meta = FileMetaDataset()
    held.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    held.file_meta.MediaStorageSOPClassUID = held.SOPClassUID = TwelveLeadECGWaveformStorage
    held.file_meta.MediaStorageSOPInstanceUID = held.SOPInstanceUID = generate_uid()
    held.PatientID, held.Modality = patient, "ECG"
    held.WaveformSequence = Items([group("MEDIAN BEAT", samples[:, : rate // 2]), group("RHYTHM", samples)])
    held.save_as(path, enforce_file_format=True)
    return path


def _dicom_channel(name: str) -> Any:
    from pydicom.dataset import Dataset
    from pydicom.sequence import Sequence as Items

    source, unit, one = Dataset(), Dataset(), Dataset()
    source.CodeValue, source.CodingSchemeDesignator, source.CodeMeaning = f"2:{name}", "MDC", f"Lead {name}"
    unit.CodeValue, unit.CodingSchemeDesignator, unit.CodeMeaning = "uV", "UCUM", "microvolt"
    one.ChannelSourceSequence, one.ChannelSensitivityUnitsSequence = Items([source]), Items([unit])
    one.ChannelSensitivity, one.ChannelSensitivityCorrectionFactor, one.ChannelBaseline = 2.5, 1, 0
    one.WaveformBitsStored = 16
    return one


def write_muse(path: Path, samples: Wave, rate: int, patient: str = "p1") -> Path:
    """Write a resting ECG as MUSE exports it: a median, then the rhythm, with a document type and a stray &."""
    leads = "".join(
        f"<LeadData><LeadByteCountTotal>{2 * len(row)}</LeadByteCountTotal>"
        f"<LeadAmplitudeUnitsPerBit>4.88</LeadAmplitudeUnitsPerBit><LeadAmplitudeUnits>MICROVOLTS</LeadAmplitudeUnits>"
        f"<LeadID>{name}</LeadID><WaveFormData>\n"
        f"{b64encode(np.round(row * 1000 / 4.88).astype('<i2').tobytes()).decode()}\n</WaveFormData></LeadData>"
        for name, row in zip((*NAMES, "V1", "V2", "V3", "V4", "V5", "V6"), samples, strict=False)
    )
    text = (
        '<?xml version="1.0" encoding="ISO-8859-1"?><!DOCTYPE RestingECG SYSTEM "restecg.dtd"><RestingECG>'
        f"<PatientDemographics><PatientID>{patient}</PatientID></PatientDemographics>"
        "<Diagnosis><StmtText>Sinus rhythm & nothing else, QT < 440</StmtText></Diagnosis>"
        f"<Waveform><WaveformType>Median</WaveformType></Waveform><Waveform><WaveformType>Rhythm</WaveformType>"
        f"<SampleBase>{rate}</SampleBase><SampleExponent>0</SampleExponent>{leads}</Waveform></RestingECG>"
    )
    path.write_text(text, encoding="latin-1")
    return path


def write_aecg(path: Path, samples: Wave, rate: int, patient: str = "p1") -> Path:
    """Write an annotated ECG of HL7, with 5 µV a step."""
    leads = "".join(
        f'<component><sequence><code code="MDC_ECG_LEAD_{name.upper()}" codeSystem="2.16.840.1.113883.6.24"/>'
        '<value xsi:type="SLIST_PQ"><origin value="0" unit="uV"/><scale value="5" unit="uV"/>'
        f"<digits>{' '.join(map(str, np.round(row * 200).astype(int)))}</digits></value></sequence></component>"
        for name, row in zip(NAMES, samples, strict=False)
    )
    text = (
        '<?xml version="1.0" encoding="UTF-8"?><AnnotatedECG xmlns="urn:hl7-org:v3" '
        'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><componentOf><timepointEvent><componentOf>'
        f'<subjectAssignment><subject><trialSubject><id extension="{patient}"/></trialSubject></subject>'
        "</subjectAssignment></componentOf></timepointEvent></componentOf><component><series>"
        '<component><sequenceSet><component><sequence><code code="TIME_ABSOLUTE"/><value xsi:type="GLIST_TS">'
        f'<head value="20020101"/><increment value="{1 / rate}" unit="s"/></value></sequence></component>{leads}'
        "</sequenceSet></component></series></component></AnnotatedECG>"
    )
    path.write_text(text, encoding="utf-8")
    return path


WRITERS: dict[str, Callable[[Path, Wave, int], Path]] = {
    ".edf": write_edf,
    ".bdf": write_edf,
    ".h5": write_hdf5,
    ".mat": write_matlab,
    ".hea": write_wfdb,
    ".dcm": write_dicom,
    ".xml": write_muse,
}
"""A writer for each ending."""
