"""An encoder that somebody pre-trained, for notebooks: opened by a path, given signals, usable in a pipeline.

encoder = clocs.load("runs/…/encoder.safetensors")
z = encoder.embed(signal, sampling_rate=400, channels=["II"], unit="mV").embedding
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from torch import Tensor, nn

from clocs_core.api.signals import as_array, as_unsaid, cut_signal, spread
from clocs_core.artifacts.card import EncoderCard
from clocs_core.artifacts.encoder import LoadedEncoder, load_encoder
from clocs_core.errors import DataError
from clocs_core.inference.network import outputs_of
from clocs_core.inference.rows import as_trained
from clocs_core.plugins.session import installed_session
from clocs_core.train.build import choose_device


def load(path: str | Path, device: str = "cpu") -> Embedder:
    """Open the encoder of a run: its folder, or its encoder.safetensors. device: "cpu", "cuda", or "auto".

    Of the plugins that the run used, the encoder's own is needed, and no other. Raises UnknownName where it is
    missing, and RunFolderError where there is no encoder, or none that this version can read.
    """
    found = Embedder(path, device)
    found.about  # noqa: B018  opened now, so that a wrong path is known here
    return found


@attrs.frozen(eq=False, repr=False)
class Embedded:
    """The representations of one recording, frame by frame.

    embedding is NaN where a channel of a frame cannot be used, because samples are missing or do not move at all.
    channels: as `about.channels` spells them; "all" where the encoder reads them at once.
    """

    embedding: NDArray[np.float32]  # (frame, channel, E)
    start: NDArray[np.int64]  # (frame,): the first sample of each frame, counted in the signal as it was given
    channels: tuple[str, ...]

    def __repr__(self) -> str:
        frames, channels, dim = self.embedding.shape
        return f"Embedded({frames} frames x {channels} channels ({', '.join(self.channels)}) x {dim} numbers)"


class Embedder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # sklearn has no types
    """A pre-trained encoder. `embed` takes a recording as it is; `transform`, as scikit-learn does, takes frames.

    path: an encoder file, a run folder, or the bytes of an encoder file. A clone, and a copy in another process, open
    the file again: it has to stay where it is. Bytes travel with the copy.
    """

    def __init__(self, path: str | Path | bytes, device: str = "cpu") -> None:
        self.path = path  # scikit-learn clones by these, so they stay as they were given
        self.device = device

    def __repr__(self, **_: object) -> str:
        """Name the file; scikit-learn would print the bytes of an encoder in memory."""
        place = "in memory" if isinstance(self.path, bytes) else repr(str(self.path))
        return f"Embedder({place}, device={self.device!r})"

    @property
    def about(self) -> EncoderCard:
        """The card of the encoder: method, settings, signal, label names, split hash, scores, versions."""
        return self._open().card

    @property
    def network(self) -> nn.Module:
        """The encoder itself, in eval mode: signals (n, channel, sample), normalised, to embeddings (n, E)."""
        return self._open().encoder

    def embed(
        self,
        signal: ArrayLike | Tensor,
        *,
        sampling_rate: float,
        channels: Sequence[str] | str | None = None,
        unit: str = "",
        trained_at: float | None = None,
        unseen_channels: bool = False,
    ) -> Embedded:
        """Embed a recording (channel, sample), or (sample,) of one channel.

        It is resampled, cut and normalised as the run's own recordings were when they were evaluated.
        sampling_rate: in Hz. channels: the name of every row, in order; default: the encoder's own. Rows that only
        another encoder of the run read are left out. unit: such as mV; an encoder that normalises does not need it.
        trained_at: rate of the run's recordings in Hz, for a file that does not say it. unseen_channels: embed rows
        that it was not trained on, too. Raises DataError or SettingsError where the signal does not fit; what is odd
        but possible is a ClocsWarning.
        """
        card = self.about
        unsaid = as_unsaid(card, signal, sampling_rate, channels, unit, trained_at, unseen_channels)
        rows = cut_signal(card, signal, unsaid)
        network = as_trained(self.network, card, rows.factor)
        z = outputs_of(network, rows.signal, choose_device(self.device))  # (n, E)
        embedding, names = spread(card, rows, z)
        return Embedded(embedding, rows.starts, names)

    # ----------------------------------------------------------------------------------------- as a step of a pipeline

    def fit(self, X: object = None, y: object = None) -> Self:  # noqa: N803  scikit-learn's name
        """Nothing: it was pre-trained."""
        return self

    def transform(self, X: ArrayLike | Tensor) -> NDArray[np.float32]:  # noqa: N803  scikit-learn's name
        """Frames to representations (n, E).

        X: (n, channel, sample), or (n, sample) of one channel: `about.frame_samples` at `about.frame_rate`, in
        `about.unit`, not normalised. Several channels are those of `about.channels`, in their order.
        """
        frames = _as_frames(self.about, X)
        return outputs_of(as_trained(self.network, self.about), frames, choose_device(self.device))

    @property
    def n_features_in_(self) -> int:
        """Numbers that one frame has."""
        return self.about.input_channels * self.about.frame_samples

    @property
    def _n_features_out(self) -> int:
        return self.about.embedding_dim

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.three_d_array = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_opened", None)  # the path travels, not the weights
        return state

    def _open(self) -> LoadedEncoder:
        """The file's encoder, read when it is first needed, and again where path or device were set anew."""
        asked = (self.path, self.device)
        if getattr(self, "_opened", (None, None))[0] != asked:
            source = self.path if isinstance(self.path, bytes) else Path(self.path)
            self._opened = asked, load_encoder(source, installed_session().catalogue, choose_device(self.device))
        return self._opened[1]


def _as_frames(card: EncoderCard, frames: ArrayLike | Tensor) -> NDArray[np.float32]:
    """Frames as the network takes them (n, channel, sample)."""
    array = np.ascontiguousarray(as_array(frames), dtype=np.float32)
    shaped = array[:, None] if array.ndim == 2 else array
    expected = (card.input_channels, card.frame_samples)
    if shaped.ndim != 3 or shaped.shape[1:] != expected or not len(shaped):
        flat = f" or (n, {expected[1]})" if expected[0] == 1 else f": {', '.join(card.channels)}"
        raise DataError(
            f"X has the shape {array.shape}, and the encoder reads frames (n, {expected[0]}, {expected[1]}){flat}. "
            "`embed` cuts a recording of any length and rate into such frames."
        )
    if not np.isfinite(shaped).all():
        bad = np.flatnonzero(~np.isfinite(shaped).all(axis=(1, 2)))
        raise DataError(
            f"X misses samples (NaN or infinite) in {len(bad)} frames, the first is {bad[0]}; leave them out."
        )
    return shaped
