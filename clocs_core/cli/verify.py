"""`clocs verify`: check that all ways to compute a method agree on this machine."""

from __future__ import annotations

import click

from clocs_core.cli.session import pass_session
from clocs_core.plugins.session import Session


@click.command("verify")
@click.option("--plugin", "method", metavar="METHOD", required=True, help="Method to verify.")
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
    from rich.console import Console
    from rich.table import Table

    from clocs_core.testing.agreement import GRADIENT_TOLERANCE, LOSS_TOLERANCE, verify_method
    from clocs_core.train.build import choose_device

    where = choose_device(device)
    table = Table("way", "loss", "error of the loss", "of the gradients", "", box=None)
    found = []
    console = Console(stderr=True)
    with console.status("comparing …"):
        for one in verify_method(session.catalogue, method, where, batch=batch, samples=samples, embedding_dim=dim):
            found.append(one)
            if one.skipped:
                table.add_row(one.way, "", "", "", f"not tried: {one.skipped}")
            elif one.problem:
                table.add_row(one.way, "", "", "", f"FAILS: {one.problem}")
            else:
                verdict = "agrees" if one.holds else "DOES NOT AGREE"
                table.add_row(one.way, f"{one.loss:.6f}", f"{one.loss_error:.1e}", f"{one.gradient_error:.1e}", verdict)
    Console(width=None if console.is_terminal else 140).print(table)
    allowed = f"{LOSS_TOLERANCE:.0e} of the loss and {GRADIENT_TOLERANCE:.0e} of the gradients"
    click.echo(f"Errors are relative; allowed are {allowed}.")
    return 0 if all(one.holds for one in found) else 1
