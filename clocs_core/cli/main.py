"""Load the plugins, build the commands, and print errors of the user in one line with an exit code."""

from __future__ import annotations

import argparse
import atexit
import gc
import os
import shlex
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib.metadata import EntryPoint
from typing import Any

import click

from clocs_core import __version__
from clocs_core.cli.compare import compare_command
from clocs_core.cli.completing import completion_command
from clocs_core.cli.data import data_group
from clocs_core.cli.display import LOUDNESS, Loudness
from clocs_core.cli.doctor import doctor_command
from clocs_core.cli.embed import embed_command
from clocs_core.cli.evaluate import evaluate_command
from clocs_core.cli.examples import add_examples
from clocs_core.cli.export import export_command
from clocs_core.cli.grid import grid_group
from clocs_core.cli.output import echo, only_results_on_stdout, show_all_characters
from clocs_core.cli.plugin_commands import add_commands
from clocs_core.cli.plugins import plugins_command
from clocs_core.cli.predict import predict_command
from clocs_core.cli.processes import is_first, is_repeating, leave_after_error, may_speak
from clocs_core.cli.run import run_command
from clocs_core.cli.signals import heed_signals, say_stopped
from clocs_core.cli.similar import similar_command
from clocs_core.cli.unforeseen_errors import describe_io, describe_unforeseen, plugin_at_fault
from clocs_core.cli.verify import verify_command
from clocs_core.cli.wording import as_flags, flags_of
from clocs_core.errors import ClocsError
from clocs_core.plugins.host import Plugin
from clocs_core.plugins.printing import printing_to_stderr
from clocs_core.plugins.session import Session, open_session
from clocs_core.progress import COMMAND

UNFORESEEN = 1  # as Python, for an exception
MISTAKE = 2  # as click, for a wrong command line


def main(arguments: Sequence[str] | None = None, entry_points: Iterable[EntryPoint] | None = None) -> int:
    """Run one command. Returns the exit code; no error shows a traceback unless --traceback asks for it."""
    _prepare_libraries()
    show_all_characters(sys.stdout, sys.stderr)
    # Python searches all objects for garbage as it ends, half a second with torch loaded. It skips frozen ones.
    atexit.register(gc.freeze)
    code = _heeding(list(sys.argv[1:] if arguments is None else arguments), entry_points)
    if code:
        leave_after_error(code)
    return code


def _heeding(given: list[str], entry_points: Iterable[EntryPoint] | None) -> int:
    """Run one command, and say what to do next where a signal or the disk stops it."""
    with heed_signals() as came:
        try:
            return _run(given, entry_points)
        except (click.Abort, KeyboardInterrupt) as problem:
            return say_stopped(problem, quietly=not is_first())
        except OSError as problem:  # a full disk, a folder without permission
            return 128 + came[0] if came else _complain(describe_io(problem))


def _run(given: list[str], entry_points: Iterable[EntryPoint] | None) -> int:
    """Run one command, and print errors except those of a disk or a signal."""
    command: click.Command | None = None
    plugins: Iterable[Plugin] = ()
    ours = argparse.Namespace(traceback="--traceback" in given)
    try:
        ours, rest = _take_global_options(given)
        trace = (lambda text: echo(text.rstrip(), err=True)) if ours.trace_hooks else None
        session = open_session(entry_points, ours.without, trace)
        plugins = session.host.plugins
        cli = build_cli(session, _loudness(ours))
        command = _find_command(cli, rest)
        with only_results_on_stdout() if "--json" in rest else nullcontext(), _named(given):
            result = cli.main(rest, prog_name="clocs", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except SystemExit as problem:  # a command of core never calls sys.exit, so a plugin must have done it
        if not _is_of_core(command) or plugin_at_fault(problem, plugins) is None:
            raise
        _complain(describe_unforeseen(problem, plugins))
        return UNFORESEEN
    except Exception as problem:
        if ours.traceback:
            traceback.print_exception(problem)
        if not may_speak(problem):
            return MISTAKE if isinstance(problem, ClocsError) else UNFORESEEN
        if isinstance(problem, ClocsError):
            return _complain(as_flags(str(problem), flags_of(command)))
        if isinstance(problem, click.ClickException):
            problem.show()
            return problem.exit_code
        if isinstance(problem, (OSError, click.Abort)):
            raise
        _complain(describe_unforeseen(problem, plugins))
        return UNFORESEEN


@contextmanager
def _named(given: Sequence[str]) -> Iterator[None]:
    """Let reports that are written inside name this command line."""
    token = COMMAND.set(shlex.join(["clocs", *given]))
    try:
        yield
    finally:
        COMMAND.reset(token)


def build_cli(session: Session, loudness: Loudness = "usual") -> click.Group:
    """Build the commands of clocs, and those that plugins add. loudness: how much progress is shown."""

    @click.group(context_settings={"help_option_names": ["-h", "--help"]}, epilog=_EPILOG)
    @click.version_option(__version__, prog_name="clocs")
    @click.option(
        "--without",
        metavar="PLUGIN",
        multiple=True,
        help="Leave a plugin out, by its name or as DISTRIBUTION:NAME. Allowed anywhere in the command.",
    )
    @click.option("--trace-hooks", is_flag=True, help="Print every hook call to stderr. Allowed anywhere.")
    @click.option("--traceback", is_flag=True, help="Print where an error comes from. Allowed anywhere.")
    @click.option("--quiet", is_flag=True, help="Print results and warnings, but no progress. Allowed anywhere.")
    @click.option("--verbose", is_flag=True, help="Print a line for every epoch. Allowed anywhere.")
    @click.pass_context
    def cli(context: click.Context, /, **_read_before_plugins_were_loaded: Any) -> None:
        """Contrastive learning of physiological signals across space, time and patients."""
        context.obj = session
        context.meta[LOUDNESS] = loudness
        conflicts = [problem for shelf in session.catalogue.shelves() for problem in shelf.conflicts()]
        problems = [*(broken.problem for broken in session.host.broken), *session.host.remarks, *conflicts]
        for problem in () if is_repeating() else problems:
            echo(f"Warning: {problem}", err=True)

    cli.add_command(run_command)
    cli.add_command(evaluate_command)
    cli.add_command(predict_command)
    cli.add_command(compare_command)
    cli.add_command(grid_group)
    cli.add_command(data_group)
    cli.add_command(plugins_command)
    cli.add_command(verify_command)
    cli.add_command(embed_command)
    cli.add_command(similar_command)
    cli.add_command(export_command)
    cli.add_command(doctor_command)
    cli.add_command(completion_command)
    add_examples(cli)
    with printing_to_stderr():
        add_commands(cli, session.host, lambda text: echo(f"Warning: {text}", err=True))
    return cli


_EPILOG = "`clocs plugins` lists the installed methods and data sets. `clocs run --help` shows how to run one."


def _prepare_libraries() -> None:
    """Set variables that libraries of torch read once, when it is loaded. A value set by the user is kept.

    MIMALLOC_PURGE_DELAY: the allocator of some builds (mimalloc; Linux on ARM) keeps freed pages. By default it returns
    and requests them in every training step: 5,700 page faults a step, a tenth of its time.
    GOMP_SPINCOUNT, KMP_BLOCKTIME (GNU's OpenMP and Intel's): threads that wait for work sleep after some microseconds.
    By default they turn in a loop for milliseconds. On a machine with other work, all then wait for a thread that has
    no core, and a training takes 3 times as long (docs/speed.md).
    TORCH_CPP_LOG_LEVEL: where one of several processes ends, torch warns the others in pages of C++ frames, before the
    sentence that says what to do.
    """
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", "-1")
    if "WORLD_SIZE" in os.environ:
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "3000")
        os.environ.setdefault("KMP_BLOCKTIME", "0")


def _take_global_options(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Extract the options that decide which plugins are loaded, at any position: commands are known only later."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("--trace-hooks", action="store_true")
    parser.add_argument("--traceback", action="store_true")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    try:
        return parser.parse_known_args(arguments)
    except argparse.ArgumentError as problem:
        raise click.UsageError(str(problem)) from None


def _loudness(ours: argparse.Namespace) -> Loudness:
    if ours.quiet and ours.verbose:
        raise click.UsageError("--quiet leaves progress out, and --verbose prints more of it; give one of them.")
    return "quiet" if ours.quiet else "verbose" if ours.verbose else "usual"


def _find_command(cli: click.Command, arguments: Sequence[str]) -> click.Command:
    """Find the command that is called, for messages that name its flags."""
    for word in arguments:
        if isinstance(cli, click.Group) and word in cli.commands:
            cli = cli.commands[word]
    return cli


def _is_of_core(command: click.Command | None) -> bool:
    return command is not None and str(getattr(command.callback, "__module__", "")).startswith("clocs_core.")


def _complain(text: str) -> int:
    echo(f"Error: {text}", err=True)
    return MISTAKE
