"""Splits by patient: the paper's counts, independence of order and process, and what one patient more changes."""

from __future__ import annotations

import subprocess
import sys
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clocs_core.data.splits import parts_of_patients, split_patients
from clocs_core.errors import DataError, SettingsError

RULES = ("60/20/20", "64/16/20")


@pytest.mark.parametrize(
    ("patients", "rule", "expected"),
    [
        (10_646, "60/20/20", (6387, 2129, 2130)),
        (6_877, "64/16/20", (4402, 1100, 1375)),
        (313, "64/16/20", (201, 50, 62)),
        (8_528, "64/16/20", (5459, 1364, 1705)),
    ],
)
def test_the_rules_give_the_patient_counts_of_the_paper(patients, rule, expected):
    """Appendix A.2: scores can be compared only where the parts have the same size."""
    split = split_patients((f"p{i}" for i in range(patients)), 0, rule)
    assert tuple(split.counts().values()) == expected
    assert list(split.counts()) == ["train", "validation", "test"]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("n", [3, 4, 5, 6, 7, 10, 19, 20, 21, 100, 1001])
def test_every_part_gets_a_patient_and_large_sets_follow_the_rule_exactly(n, rule):
    """Three patients are enough to see a whole run work; from ten on, nothing is bent."""
    counts = split_patients((f"p{i}" for i in range(n)), 1, rule).counts()
    assert min(counts.values()) >= 1
    if n >= 10 and rule == "60/20/20":
        assert counts["train"] == int(0.6 * n)
        assert counts["validation"] == int(0.2 * n)
    if n >= 10 and rule == "64/16/20":
        assert counts["test"] == int(0.2 * n)
        assert counts["validation"] == int(0.2 * (n - counts["test"]))


patients_strategy = st.lists(st.text(max_size=6), min_size=3, max_size=60, unique=True)


@given(patients_strategy, st.integers(0, 2**31), st.sampled_from(RULES), st.randoms(use_true_random=False))
def test_parts_are_disjoint_complete_and_blind_to_order_and_repeats(patients, seed, rule, shuffler):
    """A leak of one patient into another part is the fault that makes every score a lie."""
    split = split_patients(patients, seed, rule)
    train, validation, test = (set(split.patients(part)) for part in ("train", "validation", "test"))
    assert not train & validation
    assert not train & test
    assert not validation & test
    assert train | validation | test == set(patients)
    again = patients + patients[: len(patients) // 2]
    shuffler.shuffle(again)
    assert split_patients(again, seed, rule) == split


@given(patients_strategy.filter(lambda names: len(names) > 3), st.integers(0, 99), st.sampled_from(RULES), st.data())
def test_one_patient_fewer_moves_at_most_three_others(patients, seed, rule, data):
    """A broken file found later must not reshuffle who tests."""
    gone = data.draw(st.sampled_from(patients))
    before = split_patients(patients, seed, rule).parts
    after = split_patients([name for name in patients if name != gone], seed, rule).parts
    assert sum(before[name] != part for name, part in after.items()) <= 3


def test_the_order_is_that_of_a_digest_written_down_here():
    """The digest is a promise: the same seed must give the same parts on every machine and in every release."""
    names = [f"patient {i}" for i in range(10)]
    order = sorted(names, key=lambda name: sha256(f"7\t{name}".encode()).hexdigest())
    split = split_patients(names, 7, "60/20/20")
    assert set(split.patients("train")) == set(order[:6])
    assert set(split.patients("validation")) == set(order[6:8])
    assert set(split.patients("test")) == set(order[8:])


def test_another_process_and_hash_seed_give_the_same_split():
    """Python's own hash changes with every process; a resumed run would train on its test patients."""
    program = (
        "from clocs_core.data.splits import split_patients\n"
        "import sys\n"
        "assert 'torch' not in sys.modules\n"
        "sys.stdout.write(split_patients({f'p{i}' for i in range(50)}, 3, '64/16/20').hash)"
    )
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert found == split_patients([f"p{i}" for i in range(50)], 3, "64/16/20").hash


def test_seeds_differ():
    """Five seeds are five splits, or their spread says nothing."""
    names = [f"p{i}" for i in range(100)]
    assert len({split_patients(names, seed, "60/20/20").hash for seed in range(5)}) == 5


@pytest.mark.parametrize(("patients", "found"), [("", "are 0 in all"), ("aa", "is 1 in all"), ("ab", "are 2 in all")])
def test_fewer_than_three_patients_are_refused(patients, found):
    """Repeats do not count: two recordings of one patient cannot be trained and tested on."""
    with pytest.raises(DataError, match=found):
        split_patients(patients, 0, "60/20/20")


def test_an_unknown_rule_is_refused_with_those_there_are():
    with pytest.raises(SettingsError, match=r"No split rule '70/30'; there is 60/20/20 and 64/16/20\."):
        split_patients("abcd", 0, "70/30")  # type: ignore[arg-type]


def test_a_word_for_each_recording_gives_the_part_of_every_patient() -> None:
    words = ["Train", "training", "val", "dev", " test "]
    assert parts_of_patients(["a", "a", "b", "c", "d"], words) == {
        "a": "train",
        "b": "validation",
        "c": "validation",
        "d": "test",
    }
    with pytest.raises(DataError, match=r"Patient 'a' is in part 'holdout'; a part is train, validation or test\."):
        parts_of_patients(["a"], ["holdout"])
    with pytest.raises(DataError, match=r"Patient 'a' is in two parts, train and test, so scores would be too good"):
        parts_of_patients(["a", "b", "a"], ["train", "val", "test"])
