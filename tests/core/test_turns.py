"""Threads that take turns: each finds torch's random numbers as it left them, in the order in which they ask."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
import torch

from clocs_core.turns import Turns, heed_stop, waiting

pytestmark = pytest.mark.timeout(20)


def in_threads(turns: Turns, *works: Callable[[], None]) -> None:
    """Do each work in a thread of its own that takes turns; raise what one of them raised."""
    problems: list[BaseException] = []
    together = threading.Barrier(len(works))

    def take_part(work: Callable[[], None]) -> None:
        together.wait()
        try:
            with turns.taking_part():
                work()
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=take_part, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]


def draw(seed: int) -> list[float]:
    """Draw numbers from torch's default generator, and let others have their turn between two draws."""
    torch.manual_seed(seed)
    found = []
    for _ in range(20):
        found.append(float(torch.rand(())))
        with waiting():
            pass
    return found


def test_each_thread_draws_as_if_it_were_alone() -> None:
    """Dropout draws from the default generator, which all threads of a process share."""
    alone = {seed: draw(seed) for seed in range(3)}
    found: dict[int, list[float]] = {}

    def work(seed: int) -> Callable[[], None]:
        return lambda: found.update({seed: draw(seed)})

    in_threads(Turns(), *map(work, range(3)))
    assert found == alone


def test_only_one_thread_works_at_a_time() -> None:
    at_work, seen = list[str](), list[list[str]]()

    def work(name: str) -> None:
        for _ in range(5):
            at_work.append(name)
            time.sleep(0.002)  # another thread that worked now would be seen
            seen.append(list(at_work))
            at_work.remove(name)
            with waiting():
                time.sleep(0.001)

    in_threads(Turns(), lambda: work("a"), lambda: work("b"), lambda: work("c"))
    assert len(seen) == 15
    assert all(len(names) == 1 for names in seen)


def test_turns_are_taken_in_the_order_in_which_they_are_asked_for() -> None:
    """The thread that gave the turn away asks last, and gets it last."""
    turns, order = Turns(), list[str]()

    def take_part(name: str) -> None:
        with turns.taking_part():
            order.append(name)

    with turns.taking_part():
        threads = [threading.Thread(target=take_part, args=(name,)) for name in "badc"]
        for number, thread in enumerate(threads, start=1):
            thread.start()
            while len(turns._asking) < number:
                time.sleep(0.001)
        with waiting():
            pass
        order.append("first")
    for thread in threads:
        thread.join()
    assert order == ["b", "a", "d", "c", "first"]


def test_the_generators_are_restored_at_the_end() -> None:
    torch.manual_seed(7)
    before = torch.get_rng_state()
    turns = Turns()
    in_threads(turns, lambda: draw(0) and None)
    turns.restore()
    assert torch.equal(torch.get_rng_state(), before)


def test_a_thread_that_is_to_stop_is_told_once_and_can_clean_up() -> None:
    """Listeners write to the disk when a run stops: that waits for the disk, and must not be stopped again."""
    turns, cleaned = Turns(), list[str]()

    def work() -> None:
        turns.stop()
        try:
            with waiting():
                pass
        except KeyboardInterrupt:
            with waiting():
                cleaned.append("file")
            heed_stop()
            cleaned.append("told")
            raise

    with pytest.raises(KeyboardInterrupt):
        in_threads(turns, work)
    assert cleaned == ["file", "told"]


def test_a_thread_without_turns_waits_and_goes_on() -> None:
    with waiting():
        heed_stop()


def test_an_error_passes_the_turn_on() -> None:
    turns, done = Turns(), list[str]()

    def fails() -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        in_threads(turns, fails, lambda: done.append("other"))
    assert done == ["other"]
