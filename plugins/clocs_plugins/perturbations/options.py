"""What can be said of each perturbation on the command line. The plugin's card imports this file, so: no torch."""

from __future__ import annotations

import attrs

from clocs_core import SettingsError, option

_strength = (lambda size: size is None or 0 <= size < float("inf"), "be zero or more, and finite")
_positive = (lambda count: count >= 1, "be 1 or more")


@attrs.frozen
class GaussianOptions:
    """Options of the perturbation `gaussian`: at most one of two ways to say how strong the noise is."""

    sigma: float | None = option(
        None, "standard deviation in the data set's unit; 10 µV if not given and the unit is a voltage", check=_strength
    )
    relative: float | None = option(
        None, "or a fraction of each signal's own; 0.07 if not given and the unit is no voltage", check=_strength
    )

    def __attrs_post_init__(self) -> None:
        if self.sigma is not None and self.relative is not None:
            raise SettingsError(
                f"gaussian got both sigma={self.sigma} and relative={self.relative}; give one of them, "
                "each says how strong the noise is. Where a method presets the other, "
                "`-o gaussian.relative=none` or `-o gaussian.sigma=none` takes it away."
            )


@attrs.frozen
class SpecAugmentOptions:
    """Options of the perturbations `sa_t` and `sa_f`. "We chose w = 0.2 and R = 1"; window and hop are our choice."""

    width: float = option(
        0.2, "w, share of the bins under one mask", check=(lambda w: 0 <= w <= 1, "be between 0 and 1")
    )
    repeats: int = option(1, "R, masks for each signal; they may overlap", check=_positive)
    window: int = option(
        256, "samples under the window, at most a quarter of the signal", check=(lambda w: w >= 2, "be 2 or more")
    )
    hop: int = option(64, "samples from one window to the next; it shrinks with the window", check=_positive)

    def __attrs_post_init__(self) -> None:
        if 2 * self.hop > self.window:
            raise SettingsError(
                f"SpecAugment got hop={self.hop} and window={self.window}; make the hop half a window or less, "
                "or samples between the windows cannot be recovered"
            )


@attrs.frozen
class ScalingOptions:
    """Options of the perturbation `scaling`."""

    factor: float = option(
        0.9,
        "what amplitudes are multiplied by; min-max normalisation of each view undoes it, whatever it is",
        check=(lambda factor: 0 < factor < float("inf"), "be positive and finite"),
    )


@attrs.frozen
class PermutationOptions:
    """Options of the perturbation `permutation`."""

    pieces: int = option(20, "how many pieces a signal is cut into", check=_positive)


@attrs.frozen
class TimeWarpOptions:
    """Options of the perturbation `time_warp`."""

    pieces: int = option(9, "how many pieces a signal is cut into; half of them, rounded up, stretch", check=_positive)
    stretch: float = option(
        1.05,
        "how much longer a stretched piece gets; the others get as much shorter",
        check=(lambda stretch: 1 <= stretch <= 10, "be between 1 and 10"),
    )
