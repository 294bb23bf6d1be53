"""Draw one simulated patient of each rhythm on ECG paper: 25 mm/s and 10 mm/mV, into demo-ecg.png.

Run from anywhere where `clocs` is installed: python docs/pictures/make_demo_ecg.py
"""

from io import BytesIO
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MultipleLocator
from numpy.typing import NDArray
from PIL import Image

from clocs_plugins.demo.simulator import LEADS, draw_heart, simulate

SEEDS = {"AFIB": 1, "GSVT": 58, "SB": 61, "SR": 71}  # patients whose traces stay within their rows
NAMES = {
    "AFIB": "atrial fibrillation",
    "GSVT": "supraventricular tachycardia",
    "SB": "sinus bradycardia",
    "SR": "sinus rhythm",
}
SAMPLING_RATE = 500  # Hz
COLUMNS = [LEADS[i : i + 3] for i in range(0, 12, 3)]  # the clinic's 3 x 4 layout, each lead for 2.5 s
ROW_HEIGHT = 2.4  # mV of paper for one row


def draw_paper(axes: Axes, seconds: float, bottom: float, top: float) -> None:
    """Rule the axes: small squares of 40 ms and 0.1 mV, large ones of 200 ms and 0.5 mV."""
    axes.set(xlim=(0, seconds), ylim=(bottom, top), aspect=0.4, facecolor="#fff7f5")  # 25 mm/s to 10 mm/mV
    for axis, large, small in ((axes.xaxis, 0.2, 0.04), (axes.yaxis, 0.5, 0.1)):
        axis.set_major_locator(MultipleLocator(large))
        axis.set_minor_locator(MultipleLocator(small))
    axes.grid(which="minor", color="#f9dcd8", linewidth=0.25)
    axes.grid(which="major", color="#eda9a2", linewidth=0.5)
    axes.tick_params(which="both", length=0, labelbottom=False, labelleft=False)
    axes.spines[:].set_color("#eda9a2")


def draw_trace(axes: Axes, signal: NDArray[np.float32], start: int, row: int, name: str) -> None:
    """Draw one lead at its place, with its name above the trace; `signal` is (samples,) in mV."""
    time = (start + np.arange(len(signal))) / SAMPLING_RATE
    level = -row * ROW_HEIGHT
    axes.plot(time, signal - np.median(signal) + level, color="#1a1a2e", linewidth=0.55)
    axes.text(time[0] + 0.05, level + 0.85, name, fontsize=6, weight="bold", color="#8a1c1c")


def draw_sheet(axes: Axes, rhythm: str) -> None:
    """Draw one patient: three rows of four leads and lead II for the whole ten seconds."""
    rng = np.random.default_rng(SEEDS[rhythm])
    signal = simulate(draw_heart(rhythm, rng), rng, sampling_rate=SAMPLING_RATE)  # (12, samples)
    draw_paper(axes, seconds=10, bottom=-3 * ROW_HEIGHT - 1.3, top=1.7)
    quarter = signal.shape[1] // 4
    for column, leads in enumerate(COLUMNS):
        for row, lead in enumerate(leads):
            part = slice(column * quarter, (column + 1) * quarter)
            draw_trace(axes, signal[LEADS.index(lead), part], part.start, row, lead)
    draw_trace(axes, signal[LEADS.index("II")], 0, 3, "II")
    axes.set_title(f"{rhythm}: {NAMES[rhythm]}", fontsize=8, loc="left", pad=3)


def main() -> None:
    """Draw the four sheets and write them beside this script."""
    figure, sheets = plt.subplots(2, 2, figsize=(13, 6.1), layout="constrained")
    for axes, rhythm in zip(sheets.flat, SEEDS, strict=True):
        draw_sheet(axes, rhythm)
    figure.text(0.995, 0.002, "simulated; 25 mm/s, 10 mm/mV", fontsize=6, ha="right", color="#666")
    drawn = BytesIO()
    figure.savefig(drawn, dpi=130)
    # Paper and ink need no more than 24 colours; with millions the file is four times as large.
    palette = Image.open(drawn).convert("RGB").quantize(24, dither=Image.Dither.NONE)
    palette.save(Path(__file__).with_name("demo-ecg.png"), optimize=True)


if __name__ == "__main__":
    main()
