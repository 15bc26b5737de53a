"""What the end of an epoch shows: the curves so far, and some translations."""

from d2l_attention.translator.epochs import points
from d2l_attention.translator.translator import Translator


class Report:
    """Learning curves in the run folder, translations on the screen.

    Args:
        folder: `RunFolder`.
        trainer: `Trainer`.
        samples: Int, how many sentences of the validation split are
            translated, the same ones after each epoch.
    """

    def __init__(self, folder, trainer, samples):
        self._folder, corpus = folder, trainer.corpus
        self._pairs = corpus.pairs.validation[:samples]
        self._translator = Translator(
            trainer.model, corpus.vectorizers, trainer.settings.longest()
        )

    def draw(self, history):
        """Write `learning_curves.png`.

        Args:
            history: Rows of the history, in the order of `epochs.COLUMNS`.

        Raises:
            RunError: If the file cannot be written; the old one stays.
        """
        from d2l_attention.heatmaps import plot_learning_curves
        from d2l_attention.heatmaps.display import to_png

        curves = {
            "training loss": points(history, "loss"),
            "validation loss": points(history, "validation_loss"),
        }
        rate = points(history, "learning_rate")
        ax = plot_learning_curves(curves, rate)
        self._folder.write("learning_curves.png", to_png(ax.figure))

    def samples(self):
        """List of str: `source → translation [reference]`."""
        if not self._pairs:
            return []
        found = self._translator.translate(
            [source for source, _ in self._pairs]
        )
        return [
            f"  {source} → {text} [{target}]"
            for (source, target), text in zip(self._pairs, found, strict=True)
        ]
