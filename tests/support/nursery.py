"""Runs jobs of the conformance kit in forks of one process that has imported the fakes already.

`clocs_core.testing.isolated.run_isolated` starts an interpreter for each, of which a quarter of a second is imports.
A fork has done nothing either, hashes otherwise than the tests' own process, and is there in milliseconds.
"""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def open_nursery() -> Iterator[Callable[..., Any]]:
    """A function that stands in for `run_isolated`."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONHASHSEED": "12345"}
    command = [sys.executable, "-P", "-B", __file__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        questions, answers = process.stdin, process.stdout
        assert questions is not None
        assert answers is not None

        def run(job: str, *arguments: object) -> Any:
            pickle.dump((job, sys.path, arguments), questions)
            questions.flush()
            return pickle.load(answers)

        yield run
        questions.close()  # which ends it


def serve() -> None:
    """Fork for each job that comes in, and send back what it says, until nobody is there to ask."""
    import flawed_offers  # noqa: F401  what the forks shall have imported

    from clocs_core.testing.child import try_dataset, try_imports

    jobs: dict[str, Callable[..., Any]] = {"dataset": try_dataset, "imports": try_imports}
    questions = sys.stdin.buffer
    assert isinstance(questions, io.BufferedReader)
    while questions.peek(1):
        job, path, arguments = pickle.load(questions)
        fork = os.fork()
        if fork == 0:
            sys.path[:] = path
            pickle.dump(jobs[job](*arguments), sys.stdout.buffer)
            sys.stdout.buffer.flush()
            os._exit(0)
        if os.waitpid(fork, 0)[1]:  # no answer will come: let whoever waits for it see an end
            sys.exit("a job ended without a result")


if __name__ == "__main__":
    serve()
