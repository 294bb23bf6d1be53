"""The simulated ECGs are what a clinician would call them; measured with detectors written here, in loops."""

import attrs
import numpy as np
import pytest

from clocs_plugins.demo.rhythms import RHYTHMS
from clocs_plugins.demo.simulator import LEADS, draw_heart, simulate

RATES = {"AFIB": (70, 150), "GSVT": (100, 200), "SB": (38, 58), "SR": (60, 98)}  # beats per minute
PATIENTS = 12  # for each rhythm


def record(rhythm, patient, recording=0, **kwargs):
    """Record one numbered patient; the same numbers give the same samples."""
    heart = draw_heart(rhythm, np.random.default_rng([patient, 1]))
    return simulate(heart, np.random.default_rng([patient, 2, recording]), **kwargs)


def find_r_peaks(signal, sampling_rate=500):
    """Find the R peaks, as sample numbers: steep in all leads together, and 100 ms from anything steeper."""
    steepness = np.zeros(signal.shape[1])
    for lead in signal:
        step = np.convolve(lead, [1, 1, 1, 1, 0, -1, -1, -1, -1], "same")  # 16 ms; muscle averages out
        steepness += step * step
    steepness = np.convolve(steepness, np.ones(30) / 30, "same")  # one hill for each QRS of about 80 ms
    threshold = 0.3 * np.quantile(steepness, 0.98)
    peaks, reach = [], int(0.1 * sampling_rate)
    for sample in reach + np.flatnonzero(steepness[reach:-reach] >= threshold):
        if steepness[sample] == steepness[sample - reach : sample + reach + 1].max():
            peaks.append(sample)
    return np.array(peaks)


def average_beat(signal, before=120, after=150):
    """Average all leads around the R peaks, (12, before + after), each beat on its own baseline."""
    beats = []
    for peak in find_r_peaks(signal):
        if before <= peak <= signal.shape[1] - after:
            beat = signal[:, peak - before : peak + after]
            beats.append(beat - np.median(beat, axis=1, keepdims=True))
    return np.mean(beats, axis=0)


@pytest.mark.parametrize("rhythm", RHYTHMS)
def test_a_recording_has_twelve_leads_in_millivolt(rhythm):
    """Everything that reads a data set trusts shape, type and unit."""
    for patient in range(PATIENTS):
        signal = record(rhythm, patient)
        assert signal.shape == (len(LEADS), 5000)
        assert signal.dtype == np.float32
        largest = np.abs(average_beat(signal)).max(axis=1).max()
        assert 0.3 < largest < 3.5


def test_the_same_seed_gives_the_same_recording_and_another_seed_another():
    """A run can be repeated only if its data can."""
    np.testing.assert_array_equal(record("SR", 3), record("SR", 3))
    assert np.abs(record("SR", 3) - record("SR", 3, recording=1)).max() > 0.1
    assert np.abs(record("SR", 3) - record("SR", 4)).max() > 0.1


@pytest.mark.parametrize("rhythm", RHYTHMS)
def test_limb_leads_obey_einthoven_and_goldberger(rhythm):
    """The identities hold for noise too, since it enters at the electrodes as in a real recorder."""
    lead = dict(zip(LEADS, record(rhythm, 0), strict=True))
    close = {"rtol": 0, "atol": 1e-5}
    np.testing.assert_allclose(lead["III"], lead["II"] - lead["I"], **close)
    np.testing.assert_allclose(lead["aVR"], -(lead["I"] + lead["II"]) / 2, **close)
    np.testing.assert_allclose(lead["aVL"], lead["I"] - lead["II"] / 2, **close)
    np.testing.assert_allclose(lead["aVF"], lead["II"] - lead["I"] / 2, **close)


@pytest.mark.parametrize("rhythm", RHYTHMS)
def test_the_heart_rate_is_that_of_the_rhythm(rhythm):
    """A label is right only if the rate, counted from the trace, falls within its definition."""
    slowest, fastest = RATES[rhythm]
    for patient in range(PATIENTS):
        rr = np.diff(find_r_peaks(record(rhythm, patient, seconds=30))) / 500  # s
        assert 0.95 * slowest < 60 / rr.mean() < 1.05 * fastest, f"patient {patient}"


def test_only_fibrillation_is_irregular():
    """Irregular RR is the first sign of fibrillation; the median over patients leaves early beats aside."""
    variation = {}
    for rhythm in RHYTHMS:
        of_patients = []
        for patient in range(PATIENTS):
            rr = np.diff(find_r_peaks(record(rhythm, patient, seconds=30)))
            of_patients.append(rr.std() / rr.mean())
        variation[rhythm] = np.median(of_patients)
    assert variation["AFIB"] > 0.12
    assert max(variation[rhythm] for rhythm in ("GSVT", "SB", "SR")) < 0.06


def test_the_p_wave_is_seen_in_sinus_rhythm_and_not_in_fibrillation():
    """The second sign: averaged before R, lead II has a hill where the atria contract."""
    hill = {}
    for rhythm in ("AFIB", "SB", "SR"):
        of_patients = []
        for patient in range(PATIENTS):
            lead_ii = average_beat(record(rhythm, patient, seconds=60))[1]
            # 60 to 200 ms before R holds P whatever the rate; between P and QRS the trace is flat.
            of_patients.append(lead_ii[20:90].max() - lead_ii[92:100].mean())
        hill[rhythm] = np.median(of_patients)
    assert hill["SR"] > 0.06
    assert hill["SB"] > 0.06
    assert hill["AFIB"] < 0.5 * hill["SR"]


def test_fibrillating_atria_quiver_between_the_beats():
    """The third sign: after T and before the next P a slow sinus rhythm is flat, and fibrillation is not."""
    restlessness = {"AFIB": [], "SB": []}
    for rhythm, of_pauses in restlessness.items():
        for patient in range(PATIENTS):
            signal = record(rhythm, patient, seconds=60)
            peaks = find_r_peaks(signal)
            for i in range(len(peaks) - 1):
                pause = signal[1, peaks[i] + 250 : peaks[i + 1] - 150]  # lead II
                if len(pause) >= 100:  # 200 ms, a period of f waves
                    smooth = np.convolve(pause, np.ones(15) / 15, "valid")  # 30 ms; muscle averages out
                    of_pauses.append(np.ptp(smooth))
    assert len(restlessness["AFIB"]) > 20
    assert np.median(restlessness["AFIB"]) > 2 * np.median(restlessness["SB"])


def test_rhythms_share_the_shape_of_ventricular_waves():
    """Were QRS or T drawn differently for a class, a model could name it without looking at rhythm."""
    hearts = [draw_heart(rhythm, np.random.default_rng(5)) for rhythm in RHYTHMS]
    for heart in hearts[1:]:
        for wave, same in zip(heart.waves[-4:], hearts[0].waves[-4:], strict=True):
            np.testing.assert_array_equal(wave.vector, same.vector)
            assert (wave.time, wave.width, wave.skew) == (same.time, same.width, same.skew)


def test_two_patients_differ_more_than_two_recordings_of_one():
    """Patient contrast can learn only if a patient is recognised in another recording."""
    beats = []
    for patient in range(PATIENTS):
        beats.append([average_beat(record("SR", patient, recording)).ravel() for recording in range(2)])
    same, other = [], []
    for i in range(PATIENTS):
        for j in range(PATIENTS):
            correlation = np.corrcoef(beats[i][0], beats[j][1])[0, 1]
            (same if i == j else other).append(correlation)
    assert np.median(same) > 0.95
    assert min(same) > np.quantile(other, 0.95)


@pytest.mark.parametrize(
    ("seconds", "sampling_rate", "samples"),
    [(2.5, 500, 1250), (10, 100, 1000), (60, 250, 15000), (7.77, 360, 2797), (0.1, 50, 5), (0.002, 500, 1)],
)
@pytest.mark.parametrize("rhythm", RHYTHMS)
def test_any_length_and_sampling_rate_can_be_recorded(rhythm, seconds, sampling_rate, samples):
    """Tests and plugins ask for short or slow recordings; none may be cut or turn into NaN."""
    signal = record(rhythm, 1, seconds=seconds, sampling_rate=sampling_rate)
    assert signal.shape == (12, samples)
    assert np.isfinite(signal).all()


def test_the_sampling_rate_does_not_change_the_heart():
    """Apart from fast noise, every fifth sample at 500 Hz is the recording at 100 Hz: times are in seconds."""
    heart = attrs.evolve(draw_heart("AFIB", np.random.default_rng(2)), muscle=0.0, mains=0.0)
    fast = simulate(heart, np.random.default_rng(3), sampling_rate=500)
    slow = simulate(heart, np.random.default_rng(3), sampling_rate=100)
    # A wave ends four widths from its peak, at 0.03 % of its height and not always at the same sample.
    np.testing.assert_allclose(fast[:, ::5], slow, rtol=0, atol=1e-3)


def test_an_unknown_rhythm_is_answered_with_the_known_ones():
    """A typing error in a settings file should cost one look, not a search."""
    with pytest.raises(ValueError, match=r"No rhythm 'sinus'\. The simulator knows AFIB, GSVT, SB, SR\."):
        draw_heart("sinus", np.random.default_rng(0))


@pytest.mark.parametrize(("seconds", "sampling_rate"), [(0, 500), (-1, -500), (10, 0), (0.0001, 500)])
def test_a_recording_without_samples_is_refused(seconds, sampling_rate):
    """An empty array would fail later and elsewhere."""
    with pytest.raises(ValueError, match=rf"{seconds} s at {sampling_rate} Hz have none"):
        record("SR", 0, seconds=seconds, sampling_rate=sampling_rate)
