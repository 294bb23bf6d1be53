"""Draw what each perturbation makes of a simulated ECG, with its defaults, into perturbations.png.

Run from anywhere where `clocs` is installed: python docs/pictures/make_perturbations.py
"""

from io import BytesIO
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap, to_rgba_array
from numpy.typing import NDArray
from PIL import Image

from clocs_core import SignalFacts
from clocs_plugins.demo.simulator import LEADS, draw_heart, simulate
from clocs_plugins.perturbations import clocs_perturbations
from clocs_plugins.perturbations.specaugment import spectrogram

Array = NDArray[np.float32]

SAMPLING_RATE, SECONDS = 500, 5  # a frame of 2500 samples, as the paper's
PATIENT = 71  # in sinus rhythm
SEEDS = {"sa_t": 5, "sa_f": 8, "permutation": 2, "time_warp": 1}  # masks and orders that show what is meant
WINDOW, HOP, HIGHEST = 256, 64, 100  # samples, samples, Hz
INK, PALE, RED, BLUE, GREY = "#1a1a2e", "#c8ccd6", "#b3261e", "#1f5fa8", "#666"
ORDER = LinearSegmentedColormap.from_list("order", ["#7a1f5c", "#c2452d", "#d99a1c", "#3f8f4f", "#1f5fa8"])
HEAT = LinearSegmentedColormap.from_list("power", ["#fffaf7", "#fbd9c6", "#ee8f62", "#b3261e", "#3a0f1f"])
OFFERS = {offer.name: offer for offer in clocs_perturbations()}


def perturb(name: str, signal: Array) -> Array:
    """The signal (sample,) perturbed; the same seed, so the same draw, for whatever signal."""
    offer = OFFERS[name]
    generator = torch.Generator().manual_seed(SEEDS.get(name, 0))
    changed = offer.make(offer.options(), SignalFacts(unit="mV"))(torch.from_numpy(signal), generator)
    return np.asarray(changed.numpy())


def draw_axes(axes: Axes, name: str, note: str) -> None:
    """Title on the left, what is done on the right, and no more frame than needed."""
    axes.set_title(name, loc="left", fontsize=9, family="monospace", weight="bold", color=INK, pad=4)
    axes.set_title(note, loc="right", fontsize=7.5, color=GREY, pad=4)
    axes.set(xlim=(0, SECONDS), xticks=range(SECONDS + 1))
    axes.tick_params(labelsize=6.5, length=2, color=PALE, labelcolor=GREY, pad=1.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(PALE)


def draw_signal(axes: Axes, name: str, note: str, behind: Array | None, signal: Array, colour: str = RED) -> None:
    """A signal in mV over seconds, on top of the one that it was made of."""
    draw_axes(axes, name, note)
    time = np.arange(len(signal)) / SAMPLING_RATE
    if behind is not None:
        axes.plot(time, behind, color=PALE, linewidth=0.8)
    axes.plot(time, signal, color=colour, linewidth=0.8)
    axes.set(ylim=(-1.35 if signal.min() < -1 else -0.45, 1.35), yticks=(-1, 0, 1) if signal.min() < -1 else (0, 1))
    axes.grid(axis="y", color="#eee", linewidth=0.6)
    axes.set_axisbelow(True)


def draw_pieces(axes: Axes, signal: Array, colours: NDArray[np.float64]) -> None:
    """A signal whose samples have colours (sample, RGBA) of their own, over what `draw_signal` has drawn."""
    points = np.stack([np.arange(len(signal)) / SAMPLING_RATE, signal], axis=1)  # (sample, xy)
    neighbours = np.stack([points[:-1], points[1:]], axis=1)  # (line, end, xy)
    axes.add_collection(LineCollection(list(neighbours), linewidths=0.9, colors=colours[:-1], capstyle="round"))


def draw_spectrogram(axes: Axes, name: str, note: str, signal: Array) -> None:
    """The power of a signal in time and frequency, over 50 dB."""
    draw_axes(axes, name, note)
    spectrum = spectrogram(torch.from_numpy(signal), WINDOW, HOP)[0].abs().numpy().T  # (frequency, time)
    shown = 20 * np.log10(spectrum + 1e-6)
    step_t, step_f = HOP / SAMPLING_RATE, SAMPLING_RATE / WINDOW
    edges_t = (np.arange(shown.shape[1] + 1) - 0.5) * step_t
    edges_f = (np.arange(shown.shape[0] + 1) - 0.5) * step_f
    axes.pcolormesh(edges_t, edges_f, shown, cmap=HEAT, vmin=-25, vmax=25, rasterized=True)
    axes.set(ylim=(0, HIGHEST), yticks=(0, 50, 100))


def draw_key(axes: Axes) -> None:
    """What the colours mean, where a panel is left."""
    axes.axis("off")
    rows = [
        ([INK], "the original, simulated: lead II, 5 s at 500 Hz"),
        ([PALE], "the original, behind what was made of it"),
        ([RED], "perturbed, with the defaults"),
        ([ORDER(part) for part in np.linspace(0, 1, 20)], "by where a piece was before"),
        ([BLUE, RED], "stretched, squeezed"),
    ]
    for row, (colours, words) in enumerate(rows):
        height, ends = 0.86 - 0.16 * row, np.linspace(0.02, 0.13, len(colours) + 1)
        for colour, begin, end in zip(colours, ends[:-1], ends[1:], strict=True):
            axes.plot((begin, end), (height, height), color=colour, linewidth=2.5, solid_capstyle="butt")
        axes.text(0.17, height, words, fontsize=8, color=GREY, va="center")
    axes.text(0.02, 0.04, "signals in mV, spectrograms in Hz, time in seconds", fontsize=7, color=GREY, va="center")
    axes.set(xlim=(0, 1), ylim=(0, 1))


def main() -> None:
    """Draw the panels and write them beside this script."""
    rng = np.random.default_rng(PATIENT)
    lead = simulate(draw_heart("SR", rng), rng, seconds=SECONDS, sampling_rate=SAMPLING_RATE)[LEADS.index("II")]
    clean = lead - np.median(lead)  # (sample,) mV
    changed = {name: perturb(name, clean) for name in OFFERS}
    ramp = np.arange(len(clean), dtype=np.float32)  # perturbed like the signal, it tells where a sample was before
    place = perturb("permutation", ramp) / len(ramp)
    squeezed = np.gradient(perturb("time_warp", ramp)) > 1

    figure, panels = plt.subplots(3, 4, figsize=(13, 5.6), layout="constrained")
    draw_signal(panels[0, 0], "original", "one frame", None, clean, INK)
    draw_signal(panels[0, 1], "gaussian", "noise of 10 µV; one second of it", clean, changed["gaussian"])
    panels[0, 1].set(xlim=(2.8, 3.8), xticks=(3, 3.5))
    panels[0, 1].lines[0].set_linewidth(3)  # noise hides a thin line
    draw_signal(panels[0, 2], "flip_y", "read backwards", clean, changed["flip_y"])
    draw_signal(panels[0, 3], "flip_x", "upside down", clean, changed["flip_x"])
    draw_spectrogram(panels[1, 0], "sa_t", "spectrogram, up to 100 Hz", changed["sa_t"])
    draw_signal(panels[1, 1], "sa_t", "a fifth of the bins in time", clean, changed["sa_t"])
    draw_spectrogram(panels[1, 2], "sa_f", "spectrogram, up to 100 Hz", changed["sa_f"])
    draw_signal(panels[1, 3], "sa_f", "a fifth of the bins in frequency", clean, changed["sa_f"])
    draw_signal(panels[2, 0], "scaling", "times 0.9", clean, changed["scaling"])
    draw_signal(panels[2, 1], "permutation", "20 pieces in random order", None, changed["permutation"], "none")
    draw_pieces(panels[2, 1], changed["permutation"], ORDER(np.floor(20 * place) / 19))
    draw_signal(panels[2, 2], "time_warp", "9 pieces, by 5 %", clean, changed["time_warp"], "none")
    draw_pieces(panels[2, 2], changed["time_warp"], to_rgba_array(np.where(squeezed, RED, BLUE)))
    draw_key(panels[2, 3])

    drawn = BytesIO()
    figure.savefig(drawn, dpi=130)
    # 256 colours are enough for lines and one heat map; with millions the file is twice as large.
    palette = Image.open(drawn).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    palette.save(Path(__file__).with_name("perturbations.png"), optimize=True)


if __name__ == "__main__":
    main()
