"""The protocol `attention-pool`: one learnt query over the sequence of a frozen encoder, and a linear layer."""

from __future__ import annotations

import attrs

from clocs_core import Answer, Protocol, Trial, hookimpl, option

_positive = (lambda n: n > 0, "be positive")


@attrs.frozen
class PoolOptions:
    """How the query and the linear layer are trained."""

    epochs: int = option(30, "Stop after this many epochs at the latest.", check=_positive)
    patience: int = option(5, "Stop after so many epochs without a better validation loss.", check=_positive)
    learning_rate: float = option(1e-3, "Learning rate of AdamW.", check=_positive)
    weight_decay: float = option(0.01, "Weight decay of AdamW.", check=(lambda n: n >= 0, "not be negative"))
    batch_size: int = option(128, "Frames per step.", check=_positive)


def predict(options: PoolOptions, trial: Trial) -> Answer:
    """Train the pool, and predict with the weights of the epoch whose validation loss is lowest."""
    from clocs_plugins.attention_pool.pool import train_pool

    predicted, best = train_pool(options, trial)
    return Answer(predicted, chosen={"epoch": best})


@hookimpl
def clocs_protocols() -> list[Protocol]:
    """Offer the protocol."""
    return [
        Protocol(
            name="attention-pool",
            summary="One learnt query pools the sequence of the frozen encoder; a linear layer classifies it.",
            options=PoolOptions,
            predict=predict,
            wants="encoder",
            validation=True,
            sequence=True,
        )
    ]
