"""Make environments without a checkout: dependencies are links, and clocs is only what they install."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

OFFLINE = ("--no-index", "--no-deps", "--quiet", "--disable-pip-version-check")

# The same for a `pip install` as a page shows it. The third is what pip asks for in place of --no-build-isolation: the
# variable is read as the value of `build isolation`.
_PIP = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def variables() -> dict[str, str]:
    """Return the environment variables without a path to a checkout."""
    kept = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    return kept | {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def run(*command: str | Path, cwd: Path, fails: bool = False, also: Mapping[str, str] | None = None) -> str:
    """Run a command; return its output, or its error output where it is expected to fail. also: more variables."""
    words, known = [str(word) for word in command], variables() | dict(also or {})
    done = subprocess.run(words, capture_output=True, text=True, cwd=cwd, check=False, env=known)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stderr if fails else done.stdout


def link_packages(folder: Path) -> Path:
    """Make a folder with links to the packages of this environment, except clocs, its plugins and pip."""
    folder.mkdir()
    for place in (Path(path) for path in sys.path if path.endswith("site-packages")):
        for item in place.iterdir():
            ours = item.name.startswith(("clocs", "_clocs", "__editable__", "_editable", "pip"))
            if not ours and item.suffix != ".pth" and not (folder / item.name).exists():
                (folder / item.name).symlink_to(item)
    return folder


def installed(home: Path, wheels: Sequence[Path]) -> Path:
    """Make an environment with the wheels and links to their dependencies; return its interpreter."""
    venv.create(home / "venv", with_pip=False)
    python = home / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    shared = link_packages(home / "shared")
    own = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=home).strip())
    (own / "shared.pth").write_text(f"{shared}\n", encoding="utf-8")
    run(sys.executable, "-m", "pip", "--python", python, "install", *OFFLINE, *wheels, cwd=home)
    return python


def type_into_a_shell(commands: Sequence[str], cwd: Path, packages: Path, data: Path) -> str:
    """Run commands in one shell, in which pip downloads nothing; return their output.

    packages: the folder of `link_packages`, visible in environments that the commands make. data: their CLOCS_DATA.
    """
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    known = _PIP | {"PATH": path, "PYTHONPATH": str(packages), "CLOCS_DATA": str(data)}
    return run("bash", "-euc", "\n".join(commands), cwd=cwd, also=known)
