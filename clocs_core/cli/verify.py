"""`clocs verify`: check that all ways to compute a method agree on this machine."""

from __future__ import annotations

import click

from clocs_core.cli.output import echo
from clocs_core.cli.session import pass_session
from clocs_core.plugins.session import Session


@click.command("verify")
@click.option("--method", "--plugin", "method", metavar="METHOD", required=True, help="Method to verify.")
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", help="Device to compute on.")
@click.option(
    "--batch-size", "batch", type=click.IntRange(min=4), default=64, show_default=True, help="Instances per step."
)
@click.option("--samples", type=click.IntRange(min=16), default=2500, show_default=True, help="Samples per frame.")
@click.option("--embedding-dim", "dim", type=click.IntRange(min=1), default=128, show_default=True, help="Dimension E.")
@pass_session
def verify_command(session: Session, method: str, device: str, batch: int, samples: int, dim: int) -> int:
    """Check that all ways to compute a method agree.

    The loss and the gradients of each way are compared with those of the plain step. The ways are the equivalent
    choices of its parts (such as a fused loss), the captured step, and a contrast that is encoded a batch at a time.
    Signals are simulated; dropout is off. The exit code is 1 if a way does not agree.
    """
    from clocs_core.report.terminal import Terminal
    from clocs_core.testing.agreement import GRADIENT_TOLERANCE, LOSS_TOLERANCE, verify_method
    from clocs_core.train.build import choose_device

    where = choose_device(device)
    headings = ("way", "loss", "error of the loss", "of the gradients", "")
    found, rows = [], []
    with Terminal(stderr=True).status("comparing …"):
        for one in verify_method(session.catalogue, method, where, batch=batch, samples=samples, embedding_dim=dim):
            found.append(one)
            if one.skipped:
                rows.append((one.way, "", "", "", f"not tried: {one.skipped}"))
            elif one.problem:
                rows.append((one.way, "", "", "", f"FAILS: {one.problem}"))
            else:
                verdict = "agrees" if one.holds else "DOES NOT AGREE"
                errors = f"{one.loss_error:.1e}", f"{one.gradient_error:.1e}"
                rows.append((one.way, f"{one.loss:.6f}", *errors, verdict))
    Terminal(140).print_table(headings, rows)
    allowed = f"{LOSS_TOLERANCE:.0e} of the loss and {GRADIENT_TOLERANCE:.0e} of the gradients"
    echo(f"Errors are relative; allowed are {allowed}.")
    return 0 if all(one.holds for one in found) else 1
