"""Disturb a story at a chosen file operation or moment, give its command again, and compare the results."""

from __future__ import annotations

import errno
import random
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import attrs

from faults.file_faults import FileFault
from faults.processes import PATIENCE, Ended, Work, run, start
from faults.stories import Results, Story, copy_template
from faults.verdicts import GOOD, Trial, Verdict, differing, judge_end

MAY_BE_CALLED_BACK = 3  # a story that is begun again after this many kills must end


@attrs.frozen
class Undisturbed:
    """A story that nobody disturbed: its template, its results, its file operations and its duration."""

    story: Story
    template: Path
    results: Results
    changes: int
    reads: int
    seconds: float


def undisturbed(story: Story, scratch: Path) -> Undisturbed:
    """Make the template of a story and run it once for each kind of operation, counting them."""
    template = scratch / f"{story.name}-template"
    story.fill(template)
    counted: dict[str, Ended] = {}
    results: list[Results] = []
    for kind in ("changes", "reads"):
        folder = scratch / "the-same-folder"  # results may name it
        copy_template(template, folder)
        fault = FileFault(folder, kind=kind)
        counted[kind] = run(story.work(folder), scratch / f"{story.name}-{kind}.log", fault, PATIENCE)
        if counted[kind].code:
            raise RuntimeError(f"{story.name} failed without any fault: {counted[kind].text}")
        results.append(story.results(folder))
        shutil.rmtree(folder)
    unstable = differing(results[0], results[1])
    if unstable:
        raise RuntimeError(f"two undisturbed runs of {story.name} differ: {unstable}")
    changes, reads = counted["changes"], counted["reads"]
    return Undisturbed(story, template, results[0], changes.operations, reads.operations, changes.seconds)


Disturbance = Callable[[Undisturbed, Path], Trial]
"""Disturb a story in a folder and judge the end."""


def kill_at(operation: int, torn: bool) -> Disturbance:
    """Kill the process at a file operation; in the middle of it, if it is a write and `torn`."""

    def disturb(calm: Undisturbed, folder: Path) -> Trial:
        fault = FileFault(folder, "changes", "tear" if torn else "kill", operation)
        ended = run(calm.story.work(folder), folder.with_suffix(".log"), fault, PATIENCE)
        return _go_on(calm, folder, ended, "kill", f"operation {operation}{' torn' if torn else ''}")

    return disturb


def kill_after(rng: random.Random) -> Disturbance:
    """Kill up to three processes, each at a random moment."""
    return kill_at_moments([rng.random() * 0.6**turn for turn in range(MAY_BE_CALLED_BACK)])


def kill_at_moments(shares: Sequence[float]) -> Disturbance:
    """Kill processes one after the other, each after a share of the time that an undisturbed one takes."""

    def disturb(calm: Undisturbed, folder: Path) -> Trial:
        for turn, share in enumerate(shares):
            process = start(calm.story.work(folder), folder.with_suffix(f".{turn}.log"))
            time.sleep(share * calm.seconds)
            process.kill()
            ended = process.wait(PATIENCE)
        return _go_on(calm, folder, ended, "kill", "moments " + " ".join(f"{share:.3f}" for share in shares))

    return disturb


def fill_disk(operation: int) -> Disturbance:
    """Refuse every operation that needs room, from one on; then let the user make room and go on."""

    def disturb(calm: Undisturbed, folder: Path) -> Trial:
        fault = FileFault(folder, "changes", "fail on", operation, errno.ENOSPC)
        ended = run(calm.story.work(folder), folder.with_suffix(".log"), fault, PATIENCE)
        return _go_on(calm, folder, ended, "full disk", f"operation {operation}")

    return disturb


def fail_read(operation: int, error: int) -> Disturbance:
    """Let one read fail, as a network disk does, once."""

    def disturb(calm: Undisturbed, folder: Path) -> Trial:
        fault = FileFault(folder, "reads", "fail", operation, error)
        ended = run(calm.story.work(folder), folder.with_suffix(".log"), fault, PATIENCE)
        return _go_on(calm, folder, ended, "failing read", f"operation {operation} {errno.errorcode[error]}")

    return disturb


def jump_clock(seed: int) -> Disturbance:
    """Let the clock of the machine jump by days, forwards and backwards."""

    def disturb(calm: Undisturbed, folder: Path) -> Trial:
        ended = run(_jumping(calm.story.work(folder), seed), folder.with_suffix(".log"), None, PATIENCE)
        return _go_on(calm, folder, ended, "clock", f"seed {seed}")

    return disturb


def _jumping(work: Work, seed: int) -> Work:
    def jumping() -> int:
        rng, real = random.Random(seed), time.time
        time.time = lambda: real() + rng.uniform(-4e6, 4e6)
        return work()

    return jumping


def _go_on(calm: Undisturbed, folder: Path, ended: Ended, group: str, repeat: str) -> Trial:
    """Give the command again, undisturbed, and compare the results with those of a calm process."""

    def trial(verdict: Verdict, last: Ended, detail: str) -> Trial:
        return Trial(group, calm.story.name, repeat, verdict, last.seconds, last.memory, detail)

    killed = ended.code == -9
    verdict, detail = judge_end(ended, killed)
    if verdict not in GOOD:
        return trial(verdict, ended, detail)
    if verdict == "refused" and group == "full disk" and str(folder) not in ended.text:
        return trial("unclear message", ended, f"names no file: {detail}")
    if not killed and ended.code == 0:  # it got along with the fault: the results are final
        found = calm.story.results(folder) | {"remains": calm.results["remains"]}  # these go with the next command
        wrong = differing(found, calm.results)
        if wrong:
            return trial("difference", ended, wrong)
    again = run(calm.story.work(folder), folder.with_suffix(".again.log"), None, PATIENCE)
    verdict, detail = judge_end(again)
    if verdict == "refused" and "finished" in again.text:
        verdict = "equal"
    if verdict == "refused":
        return trial("not resumable", again, detail)
    if verdict not in GOOD:
        return trial(verdict, again, detail)
    found = calm.story.results(folder)
    if not killed and ended.code == 0 and " is finished" in again.text:
        found |= {"remains": calm.results["remains"]}  # nothing was read: the next command that reads data deletes them
    wrong = differing(found, calm.results)
    return trial("difference" if wrong else "equal", again, wrong)


def again(group: str, repeat: str) -> Disturbance:
    """Return the disturbance that a trial calls `repeat`. Raises ValueError for a group of trials without a command."""
    first, *words = repeat.split()
    if group == "kill" and first == "moments":
        return kill_at_moments([float(share) for share in words])
    if group == "kill":
        return kill_at(int(words[0]), torn="torn" in words)
    if group == "full disk":
        return fill_disk(int(words[0]))
    if group == "failing read":
        return fail_read(int(words[0]), getattr(errno, words[1]))
    if group == "clock":
        return jump_clock(int(words[0]))
    raise ValueError(f"trials of {group!r} are made again with their seed alone: {repeat}")


def all_kills(calm: Undisturbed) -> Iterator[Disturbance]:
    """Kill at every operation, before it and in the middle of it."""
    for operation in range(calm.changes):
        yield kill_at(operation, torn=False)
        yield kill_at(operation, torn=True)


def all_full_disks(calm: Undisturbed) -> Iterator[Disturbance]:
    """Fill the disk at every operation."""
    for operation in range(calm.changes):
        yield fill_disk(operation)
