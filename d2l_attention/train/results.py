"""What a finished run leaves: a model, vocabularies, scores and a picture."""

from pathlib import Path
import tempfile
import zipfile

from d2l_attention.datasets import (
    END,
    START,
    ids_to_text,
    make_vectorizer,
    text_to_ids,
)
from d2l_attention.datasets.files import normalize
from d2l_attention.decoding import BeamDecoder, GreedyDecoder
from d2l_attention.metrics import bleu, chrf
from d2l_attention.train.run_folder import RunError, RunFolder
import keras
import numpy as np


class Translator:
    """A trained model and its vocabularies.

    Args:
        model: A `Seq2Seq` model.
        vectorizers: Of the source and of the target.
        max_length: Int, most tokens of a source; a translation may have 8
            more.
    """

    def __init__(self, model, vectorizers, max_length):
        self.model = model
        self.vectorizers = vectorizers
        self.max_length = max_length
        self._decoders = {}

    def translate(self, texts, beam=1, batch_size=100):
        """Translations of texts as they are written, by greedy or beam search.

        Raises:
            RunError: If a text has no token, or more than `max_length`.
        """
        source = self._ids(texts)
        if beam not in self._decoders:  # each is compiled once
            self._decoders[beam] = self._decoder(beam)
        ids = self._decoders[beam].predict(
            source, batch_size=batch_size, verbose=0
        )
        return ids_to_text(ids, self.vectorizers[1])

    def _decoder(self, beam):
        vocabulary = self.vectorizers[1].get_vocabulary()
        options = (
            self.model,
            vocabulary.index(START),
            vocabulary.index(END),
            self.max_length + 8,
        )
        if beam == 1:
            return GreedyDecoder(*options)
        return BeamDecoder(*options, width=beam)

    def attention(self, text, translation):
        """Weights `(T, S)` of a translation, and the tokens on both sides.

        Of a Transformer: the last block's cross-attention, the mean of its
        heads. The last row chose the end token.
        """
        source, target = normalize(text).split(), translation.split()
        ids = text_to_ids(
            [f"{START} {translation}"], self.vectorizers[1], len(target) + 1
        )
        _, maps = self.model(
            {"source": self._ids([text]), "target": ids},
            return_attention_scores=True,
        )
        *_, last = (n for n in maps if not n.endswith("self_attention"))
        weights = np.array(maps[last])[0].mean(axis=0)
        return weights[:, : len(source)], source, [*target, END]

    def _ids(self, texts):
        texts = [normalize(text) for text in texts]
        for text in texts:
            length = len(text.split())
            if not 0 < length <= self.max_length:
                raise RunError(
                    f"A text must have 1 to {self.max_length} tokens. "
                    f"Received {length}: {text!r}"
                )
        return text_to_ids(texts, self.vectorizers[0], self.max_length)


def write_results(folder, trainer):
    """Save the model, score it on the test split, draw one alignment."""
    settings, corpus = trainer.settings, trainer.corpus
    # A plain copy, free of the strategy that trained it.
    sizes = (v.vocabulary_size() for v in corpus.vectorizers)
    model = settings.make_model(*sizes)
    shape = (None, settings.max_length)
    model.build({"source": shape, "target": shape})
    weights = [v.numpy() for v in trainer.model.variables]
    for variable, value in zip(model.variables, weights, strict=True):
        variable.assign(value)
    with tempfile.TemporaryDirectory() as beside:
        path = Path(beside) / "model.keras"
        model.save(path)
        folder.write("model.keras", path.read_bytes())
    for name, vectorizer in zip(
        ("source", "target"), corpus.vectorizers, strict=True
    ):
        words = vectorizer.get_vocabulary(include_special_tokens=False)
        folder.write(f"{name}_vocabulary.txt", "\n".join(words).encode())
    translator = Translator(model, corpus.vectorizers, settings.max_length)
    sources, references = zip(*corpus.pairs.test, strict=True)
    found = translator.translate(sources)
    rows = zip(sources, references, found, strict=True)
    columns = ("source", "reference", "translation")
    folder.write_csv("translations.csv", columns, rows)
    draw(translator, sources[0], found[0], folder.path / "alignment.png")
    scores = {"sentences": len(found), "parameters": model.count_params()}
    for name, metric in (("bleu", bleu), ("chrf", chrf)):
        score = metric(found, references)
        scores[name] = {k: float(v) for k, v in score._asdict().items()}
    folder.write_json("scores.json", scores)
    return scores


def draw(translator, text, translation, path):
    """A heatmap of where the model looked, as a PNG or an HTML file."""
    from d2l_attention.heatmaps import plot_alignment, view_attention
    from d2l_attention.heatmaps.display import to_png

    weights, source, target = translator.attention(text, translation)
    if str(path).endswith(".html"):
        view_attention(weights[None, None], target, source).save(path)
        return
    picture = to_png(plot_alignment(weights, source, target).figure, dpi=150)
    path = Path(path)
    RunFolder(path.parent).write(path.name, picture)


def load_translator(folder):
    """The `Translator` of a finished run.

    Raises:
        RunError: If the run has not finished, is not one, or is damaged.
    """
    settings = folder.read_json("settings.json")
    path = folder.path / "model.keras"
    if not path.exists():
        raise RunError(f"{folder.path} has no trained model yet.")
    try:
        max_length = settings["max_length"]
        vectorizers = [
            make_vectorizer(path.read_text(encoding="utf-8").split("\n"))
            for path in (
                folder.path / "source_vocabulary.txt",
                folder.path / "target_vocabulary.txt",
            )
        ]
        model = keras.saving.load_model(path, compile=False)
    except (ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise RunError(f"{folder.path} is damaged: {error}") from error
    found = [v.vocabulary_size() for v in vectorizers]
    sizes = [model.sizes[f"{s}_vocab_size"] for s in ("source", "target")]
    if found != sizes:
        raise RunError(
            f"{folder.path} is damaged: its vocabularies have {found} ids, "
            f"its model {sizes}."
        )
    return Translator(model, vectorizers, max_length)
