"""The options of the perturbations. The plugin's card imports this file, so it imports no torch."""

from __future__ import annotations

import attrs

from clocs_core import SettingsError, option

_strength = (lambda size: size is None or 0 <= size < float("inf"), "be zero or more, and finite")
_positive = (lambda count: count >= 1, "be 1 or more")


@attrs.frozen
class GaussianOptions:
    """Options of the perturbation `gaussian`: at most one of two ways to set the strength of the noise."""

    sigma: float | None = option(
        None, "Standard deviation in the data set's unit; default 10 µV if the unit is a voltage.", check=_strength
    )
    relative: float | None = option(
        None, "Fraction of each signal's standard deviation; default 0.07 if the unit is no voltage.", check=_strength
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
        0.2, "Share w of the bins under one mask.", check=(lambda w: 0 <= w <= 1, "be between 0 and 1")
    )
    repeats: int = option(1, "Masks R for each signal; they may overlap.", check=_positive)
    window: int = option(
        256, "Window in samples; cut to a quarter of the signal.", check=(lambda w: w >= 2, "be 2 or more")
    )
    hop: int = option(64, "Samples from one window to the next; shrinks with the window.", check=_positive)

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
        "Factor of the amplitude; min-max normalisation of each view undoes it.",
        check=(lambda factor: 0 < factor < float("inf"), "be positive and finite"),
    )


@attrs.frozen
class PermutationOptions:
    """Options of the perturbation `permutation`."""

    pieces: int = option(20, "Number of pieces of a signal.", check=_positive)


@attrs.frozen
class TimeWarpOptions:
    """Options of the perturbation `time_warp`."""

    pieces: int = option(9, "Number of pieces of a signal; half of them, rounded up, are stretched.", check=_positive)
    stretch: float = option(
        1.05,
        "Factor by which stretched pieces get longer, and the others shorter.",
        check=(lambda stretch: 1 <= stretch <= 10, "be between 1 and 10"),
    )
