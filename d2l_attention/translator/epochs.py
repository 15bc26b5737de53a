"""The weights at the ends of epochs, and which of them a run ends with."""

from d2l_attention.translator.run_folder import RunError
from d2l_attention.translator.trainer import by_name
import numpy as np

NAME = "epoch_{:04}"
COLUMNS = (  # of a history; the validation loss is "" but at an epoch's end
    "epoch",
    "step",
    "loss",
    "validation_loss",
    "learning_rate",
    "tokens_per_second",
)


def points(history, name):
    """Steps and values of a column of a history, where it has a value."""
    place = COLUMNS.index(name)
    rows = [row for row in history if row[place] != ""]
    return [row[1] for row in rows], [row[place] for row in rows]


def validation_losses(history):
    """List of the validation loss of each epoch, from the rows of a history."""
    return points(history, "validation_loss")[1]


def epoch_loss(history):
    """The mean loss of the last epoch, from the rows of a history."""
    steps, losses = map(np.array, points(history, "loss"))
    epochs = np.array(points(history, "epoch")[1])
    last = epochs == epochs[-1]
    numbers = np.diff(steps, prepend=0)  # of steps, in each row
    return float(np.average(losses[last], weights=numbers[last]))


def best_epoch(history):
    """Int, the epoch with the lowest validation loss, counted from 1."""
    return 1 + int(np.argmin(validation_losses(history)))


def out_of_patience(settings, history):
    """Whether the best epoch lies `patience` epochs or more back."""
    losses = validation_losses(history)
    if settings.patience is None or not losses:
        return False
    return len(losses) - best_epoch(history) >= settings.patience


def keep_epoch(folder, trainer, history):
    """Keep the weights of the epoch that ends, the last ones and the best.

    Args:
        folder: `RunFolder`.
        trainer: `Trainer`.
        history: Rows of the history, that of this epoch among them.

    Raises:
        RunError: If a file cannot be written.
    """
    number = len(validation_losses(history))
    weights = by_name(trainer.model.variables)
    folder.save_checkpoint(
        {name: x.numpy() for name, x in weights.items()},
        {"epoch": number},
        NAME.format(number),
    )
    settings = trainer.settings
    last = settings.average if settings.final == "average" else 2
    kept = {*range(number, number - last, -1)}
    kept.add(best_epoch(history))
    for old in {*range(1, number)} - kept:
        (folder.path / NAME.format(old)).unlink(missing_ok=True)


def final_weights(folder, settings, history):
    """The weights that a run ends with, and where they are from.

    Args:
        folder: `RunFolder`.
        settings: `Settings`.
        history: Rows of the history, up to the last step.

    Returns:
        Dict of name to array, as `by_name(model.variables)`; and a str.

    Raises:
        RunError: If the file of an epoch is damaged or missing.
    """
    number = len(validation_losses(history))
    if settings.final == "last":
        chosen = [number]
    elif settings.final == "best":
        chosen = [best_epoch(history)]
    else:
        first = max(1, number + 1 - settings.average)
        chosen = list(range(first, number + 1))
    epochs = [_load(folder, i) for i in chosen]
    where = f"epoch {chosen[0]}"
    if len(chosen) > 1:
        where = f"epochs {chosen[0]} to {chosen[-1]}, averaged"
    return {
        name: np.mean([epoch[name] for epoch in epochs], 0).astype(x.dtype)
        for name, x in epochs[-1].items()
    }, where


def _load(folder, number):
    found = folder.load_checkpoint(NAME.format(number))
    if found is None:
        path = folder.path / NAME.format(number)
        raise RunError(f"{path}, the weights of an epoch, is missing.")
    return found[0]
