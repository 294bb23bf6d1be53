"""`clocs export`: write the encoder of a run as a file for programs without PyTorch."""

from __future__ import annotations

from pathlib import Path

import click

from clocs_core.cli.completing import complete_runs
from clocs_core.cli.output import echo
from clocs_core.cli.reading import hertz, refuse_unwritable
from clocs_core.cli.session import pass_session
from clocs_core.plugins.session import Session


@click.command("export")
@click.argument("run", metavar="RUN", shell_complete=complete_runs)
@click.option(
    "--format", "kind", type=click.Choice(["onnx"]), default="onnx", show_default=True, help="Format of the file."
)
@click.option("--out", metavar="FILE", required=True, help="File to write, such as encoder.onnx.")
@click.option(
    "--sampling-rate",
    metavar="HZ",
    help="Rate of the input recordings; the file resamples them. Default: as in the evaluation of the run.",
)
@click.option(
    "--trained-at",
    metavar="HZ",
    help="Rate of the recordings it was trained on, where the encoder file does not state it.",
)
@pass_session
def export_command(
    session: Session, /, run: str, kind: str, out: str, sampling_rate: str | None, trained_at: str | None
) -> None:
    """Write the encoder of a run as an ONNX file.

    RUN is a run folder, or its encoder file. The ONNX file also resamples and normalises. Its input is windows of a
    recording, one per frame. The file is compared with PyTorch before it is written.
    """
    import torch

    from clocs_core.artifacts.encoder import load_encoder
    from clocs_core.inference.onnx_file import choose_window, export_onnx

    refuse_unwritable(Path(out), (".onnx",))
    loaded = load_encoder(Path(run), session.catalogue, torch.device("cpu"))
    rate, trained = hertz("--sampling-rate", sampling_rate), hertz("--trained-at", trained_at)
    window = choose_window(loaded.card, rate, trained)
    difference = export_onnx(loaded, window, Path(out))
    card = loaded.card
    at = "" if window.rate is None else f" at {window.rate:g} Hz"
    filters = ", ".join(f"{name}={value} Hz" for name, value in card.framing.filters.items())
    if filters:
        echo(f"filter whole recordings before windows are cut, as in training: {filters}; the file does not")
    echo(
        f"{out}: signal (n, {card.input_channels}, {window.samples}) in {card.unit or 'its unit'}{at} to embedding "
        f"(n, {card.embedding_dim}); differs from PyTorch by at most {difference:.1g}"
    )
