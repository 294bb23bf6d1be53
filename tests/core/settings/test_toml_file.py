"""settings.toml: written, read back, and refused where it does not fit."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clocs_core.errors import SettingsError
from clocs_core.settings.options import plain, structure
from clocs_core.settings.sections import DataSettings, RunSettings, ScoringSettings, TrainSettings
from clocs_core.settings.toml_file import SCHEMA, dump_tables, read_tables, seal_tables

CLASSES = {"run": RunSettings, "data": DataSettings, "train": TrainSettings, "evaluate": ScoringSettings}


def written(folder: Path, text: str) -> Path:
    path = folder / "settings.toml"
    path.write_text(text, encoding="utf-8")
    return path


@given(
    seed=st.integers(0, 2**40),
    rate=st.floats(min_value=1e-30, max_value=100),
    names=st.lists(st.text(min_size=1, max_size=4), max_size=3),
    shares=st.lists(st.floats(min_value=1e-9, max_value=1), min_size=1, max_size=3, unique_by="{:g}".format),
    folder=st.none() | st.text(max_size=5).filter(lambda text: text != "none"),
)
def test_a_file_reads_back_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    rate: float,
    names: list[str],
    shares: list[float],
    folder: str | None,
) -> None:
    """`clocs run --config settings.toml` repeats a run; a number that lost a bit would be another run."""
    made = {
        "run": RunSettings(method="m", seed=seed, perturbations=tuple(names)),
        "data": DataSettings(channels=tuple(names), root=None if folder is None else Path(folder)),
        "train": TrainSettings(learning_rate=rate),
        "evaluate": ScoringSettings(label_fraction=tuple(shares)),
    }
    text = dump_tables({name: plain(one) for name, one in made.items()})
    tables = read_tables(written(tmp_path_factory.mktemp("file"), text))
    assert {name: structure(CLASSES[name], table, name) for name, table in tables.items()} == made


def test_the_file_says_its_schema_first(tmp_path: Path) -> None:
    """Whoever opens it with another version must see at once why it does not fit."""
    text = dump_tables({"run": {"method": "m"}})
    assert text.splitlines()[0] == f"schema = {SCHEMA}"
    assert read_tables(written(tmp_path, text)) == {"run": {"method": "m"}}


def test_a_file_without_a_schema_is_read_as_this_one(tmp_path: Path) -> None:
    """A file that a person wrote has none."""
    assert read_tables(written(tmp_path, '[run]\nmethod = "m"\n')) == {"run": {"method": "m"}}


@pytest.mark.parametrize("schema", ["2", "0", '"1"', "true", "1.0"])
def test_a_file_of_another_schema_is_refused(tmp_path: Path, schema: str) -> None:
    path = written(tmp_path, f"schema = {schema}\n[run]\n")
    with pytest.raises(SettingsError) as caught:
        read_tables(path)
    assert str(caught.value).startswith(f"{path} has settings of schema ")
    assert "this version of clocs reads schema 1. Use the version that wrote it" in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "none.toml"
    with pytest.raises(SettingsError) as caught:
        read_tables(path)
    assert str(caught.value) == f"Cannot read the settings file {path}: No such file or directory."


def test_a_folder_is_no_settings_file(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"^Cannot read the settings file .*: Is a directory\.$"):
        read_tables(tmp_path)


@pytest.mark.parametrize("raw", [b"[run\n", b"method: cmsc\n", b"\xff\xfe\x00", b"a = 1\na = 2\n"])
def test_what_is_not_toml_is_refused(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "settings.toml"
    path.write_bytes(raw)
    with pytest.raises(SettingsError) as caught:
        read_tables(path)
    assert str(caught.value).startswith(f"{path} is not a TOML file: ")
    assert "\n" not in str(caught.value)


def test_a_key_outside_of_a_table_is_refused(tmp_path: Path) -> None:
    """`epochs = 3` on top of the file would be lost without a word."""
    with pytest.raises(SettingsError, match="'epochs' stands outside of a table"):
        read_tables(written(tmp_path, "epochs = 3\n[run]\n"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[run]\nseed = " + "9" * 4400, "is not a TOML file: Exceeds the limit"),
        ("[run]\nseed = 0x" + "f" * 9000, ""),
        ("[run]\nx = " + "[" * 100_000, "its tables or lists are nested too deeply"),
        ("[run]\nx = " + "{a=" * 100_000, "its tables or lists are nested too deeply"),
        ("[run]\nx = \udcff", "is not a TOML file: 'utf-8' codec can't decode"),
    ],
    ids=["digits", "hexadecimal digits", "lists", "tables", "no UTF-8"],
)
def test_a_file_that_no_parser_reads_is_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "settings.toml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(SettingsError) as caught:
        structure(RunSettings, read_tables(path)["run"], "run")
    assert message in str(caught.value)
    assert len(str(caught.value)) < 400 + len(str(path))


TABLES = {"run": {"method": "m", "seed": 3}, "train": {"epochs": 20}}


def test_the_settings_of_a_run_read_back_and_may_be_edited_for_another(tmp_path: Path) -> None:
    path = written(tmp_path, seal_tables(TABLES))
    assert read_tables(path) == read_tables(path, edited=False) == TABLES
    path.write_text(path.read_text().replace("epochs = 20", "epochs = 30"))
    assert read_tables(path)["train"] == {"epochs": 30}


def test_settings_that_changed_since_the_run_began_are_refused(tmp_path: Path) -> None:
    """A digit that flips on the disk would go on training with other settings, under the old name."""
    text = seal_tables(TABLES)
    lines = text.splitlines(keepends=True)
    changed = [text.replace("epochs = 20", "epochs = 21"), "".join(lines[:1]), "".join(lines[:-1]), ""]
    changed += ["".join(lines[:place] + lines[place + 1 :]) for place in range(len(lines))]
    for damaged in changed:
        with pytest.raises(SettingsError, match="damaged or edited since the run began"):
            read_tables(written(tmp_path, damaged), edited=False)


def test_settings_of_a_run_of_an_earlier_version_have_no_digest(tmp_path: Path) -> None:
    assert read_tables(written(tmp_path, dump_tables(TABLES)), edited=False) == TABLES
