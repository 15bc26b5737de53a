"""A run: its folder, and every file in it.

when it begins     settings.json, the vocabularies
while it trains    checkpoint, history.csv, epoch_…, learning_curves.png
at its end         model.keras, translations.csv, scores.json, alignment.png
"""

import csv
from datetime import datetime
import hashlib
import io
import json
import os
from pathlib import Path
import re
import socket
import tempfile
import warnings
import zipfile

from d2l_attention._atomic import is_unfinished, write_whole
from d2l_attention.datasets import (
    DataError,
    SubwordVectorizer,
    make_vectorizer,
)
from d2l_attention.datasets.tokens import normalize, without_end_marks
from d2l_attention.datasets.vocabularies import PIECES_PER_TOKEN
from d2l_attention.translator.scores import score
from d2l_attention.translator.settings import (
    TEXTS,
    RunError,
    changed_texts,
    settings_of,
)
from d2l_attention.translator.training_corpus import Corpus, read_splits
from d2l_attention.translator.translator import Translator, draw
import filelock
import keras
import numpy as np

LOCK, HOLDER = ".lock", ".holder"
OURS = ("settings.json", LOCK, HOLDER)  # of a run that is beginning
WORD_FILES = ("source_vocabulary.txt", "target_vocabulary.txt")
SUBWORD_FILES = ("source_subwords.model", "target_subwords.model")
EPOCH = "epoch_{:04}"
# Scores below which few sentences are understood.
BARELY_TRAINED = {"bleu": 10, "chrf": 20}
COLUMNS = (  # of a history; the validation loss is "" but at an epoch's end
    "epoch",
    "step",
    "loss",
    "validation_loss",
    "learning_rate",
    "tokens_per_second",
)


class Run:
    """Settings, vocabularies, checkpoint, history and results of one run.

    Each file is written beside its place and renamed. A reader, or the next
    start, finds the old file or the new file, never a part of one. One process
    at a time has the folder open; when it ends, however it ends, the system
    releases the folder.

    `history` has the rows of `history.csv`, in the order of `COLUMNS`: those
    of the last checkpoint, once it is loaded, and those that were added.
    """

    def __init__(self, path):
        self.path = Path(path)
        self.history = []
        self._lock = filelock.FileLock(self._at(LOCK))

    def check(self, identity):
        """Refuse the folder if it holds another run, or something else."""
        if self._at("settings.json").exists():
            self._check_settings(identity)
        # Another worker of the same run may be writing its settings now.
        elif self.path.exists() and (
            not self.path.is_dir()
            or any(
                entry.name not in OURS and not is_unfinished(entry)
                for entry in self.path.iterdir()
            )
        ):
            raise RunError(
                f"{self.path} is no run folder, and not empty. Name another."
            )

    def open(self, identity):
        """Take the folder for a run of these settings, new or continued."""
        self.check(identity)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
        except filelock.Timeout as error:
            raise RunError(
                f"{self.path} is in use by {self._holder()}. Wait until it "
                "ends, stop it, or name another folder."
            ) from error
        except OSError as error:
            raise RunError(f"Could not open {self.path}: {error}") from error
        now = datetime.now().isoformat(" ", "minutes")
        who = f"process {os.getpid()} of {socket.gethostname()}, since {now}"
        self.write(HOLDER, who.encode())
        for entry in filter(is_unfinished, self.path.iterdir()):
            entry.unlink()  # left by a write that was killed
        if not self._at("settings.json").exists():
            self.write_json("settings.json", identity)

    def close(self):
        if self._lock.is_locked:
            self._at(HOLDER).unlink(missing_ok=True)
            self._lock.release(force=True)

    def _holder(self):
        try:
            return self._at(HOLDER).read_text(encoding="utf-8")
        except OSError:
            return "another process"

    def _check_settings(self, identity):
        there = self.read_json("settings.json")
        if not isinstance(there, dict):
            raise RunError(f"{self._at('settings.json')} holds no settings.")
        changed = [
            f"{text} has changed since this run began"
            for text in changed_texts(there, identity)
        ]
        others = [
            f"{name}: {there.get(name)!r} there, {identity.get(name)!r} now"
            for name in sorted({*there, *identity} - {*TEXTS.values()})
            if all(  # the path of a text, and its checksum
                there.get(x) != identity.get(x)
                for x in (name, TEXTS.get(name, name))
            )
        ]
        if others:
            longer = there.get("epochs") != identity.get("epochs")
            raise RunError(
                f"{self.path} holds a run of other settings "
                f"({'; '.join([*changed, *others])}). Name another folder."
                + f" To train longer, add --resume-from {self.path}."
                * longer
            )
        if changed:
            raise RunError(
                f"{self.path}: {' and '.join(changed)}. Put the old text back, "
                "or name another folder."
            )

    def write(self, name, data):
        """Write bytes to a file, all or none: the old file stays."""
        try:
            write_whole(self._at(name), data)
        except OSError as error:
            raise RunError(f"Could not write: {error}") from error

    def write_json(self, name, value):
        text = json.dumps(value, indent=2, ensure_ascii=False)
        self.write(name, text.encode() + b"\n")

    def read_json(self, name):
        try:
            return json.loads(self._at(name).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise RunError(
                f"Could not read {self._at(name)}: {error}"
            ) from error

    def _at(self, name):
        return self.path / name

    # What it began with.

    def load_settings(self):
        """The `Settings` of the run; a ValueError if the folder holds none."""
        try:
            return settings_of(self.read_json("settings.json"))
        except (RunError, KeyError, TypeError) as error:
            raise ValueError(
                f"{self.path} is no run folder: {error}"
            ) from error

    def write_vocabularies(self, vectorizers):
        for i, vectorizer in enumerate(vectorizers):
            if isinstance(vectorizer, SubwordVectorizer):
                self.write(SUBWORD_FILES[i], vectorizer.model)
            else:
                words = vectorizer.get_vocabulary(include_special_tokens=False)
                self.write(WORD_FILES[i], "\n".join(words).encode())

    def load_vectorizers(self, subwords):
        if subwords:
            pieces = [self._at(name).read_bytes() for name in SUBWORD_FILES]
            return [SubwordVectorizer(model) for model in pieces]
        words = [self._at(x).read_text(encoding="utf-8") for x in WORD_FILES]
        return [make_vectorizer(text.split("\n")) for text in words]

    # Where it stands.

    def save_checkpoint(self, arrays, position):
        """Save arrays by name, where the run stands, and its history."""
        position = {**position, "history": self.history}
        self._save("checkpoint", arrays, position)
        self.write_history()

    def load_checkpoint(self):
        """`(arrays, position)` as they were saved; None before the first."""
        checkpoint = self._load("checkpoint")
        self.history = checkpoint[1]["history"] if checkpoint else []
        return checkpoint

    def write_history(self):
        self.write("history.csv", _csv(COLUMNS, self.history))

    def _save(self, name, arrays, position):
        payload = io.BytesIO()
        text = np.frombuffer(json.dumps(position).encode(), "uint8")
        # The names of the arrays begin with a number, so none is this one.
        np.savez(payload, position=text, **arrays)
        payload = payload.getvalue()
        self.write(name, self._digest(payload) + payload)

    def _load(self, name):
        path = self._at(name)
        if not path.exists():
            return None
        try:
            content = path.read_bytes()
        except OSError as error:
            raise RunError(f"Could not read {path}: {error}") from error
        digest, payload = content[:64], content[64:]
        arrays = {}
        if self._digest(payload) == digest:
            with np.load(io.BytesIO(payload)) as archive:
                arrays = {name: archive[name] for name in archive.files}
        if "position" not in arrays:
            raise RunError(
                f"{path} is damaged, or no checkpoint of a run of these "
                "settings. The file was left as it is. Move it away to begin "
                "anew."
            )
        return arrays, json.loads(arrays.pop("position").tobytes())

    def _digest(self, payload):
        """A checksum that includes the settings, which name the run."""
        path = self._at("settings.json")
        settings = path.read_bytes() if path.exists() else b""
        return hashlib.sha256(settings + payload).hexdigest().encode()

    # Its epochs.

    def points(self, name):
        """Steps and values of a column of the history, where it has a value."""
        place = COLUMNS.index(name)
        rows = [row for row in self.history if row[place] != ""]
        return [row[1] for row in rows], [row[place] for row in rows]

    def validation_losses(self):
        return self.points("validation_loss")[1]

    def epoch_loss(self):
        """The mean loss of the last epoch."""
        steps, losses = map(np.array, self.points("loss"))
        epochs = np.array(self.points("epoch")[1])
        last = epochs == epochs[-1]
        numbers = np.diff(steps, prepend=0)  # of steps, in each row
        return float(np.average(losses[last], weights=numbers[last]))

    def best_epoch(self):
        """Int, the epoch with the lowest validation loss, counted from 1."""
        return 1 + int(np.argmin(self.validation_losses()))

    def is_out_of_patience(self, patience):
        """Whether the best epoch lies `patience` epochs or more back."""
        losses = self.validation_losses()
        if patience is None or not losses:
            return False
        return len(losses) - self.best_epoch() >= patience

    def save_epoch(self, model, settings):
        """Save the parameters of the epoch that ends.

        Those of the epochs before it go, but for the last ones and the best.
        """
        number = len(self.validation_losses())
        arrays = {k: v.numpy() for k, v in by_name(model.variables).items()}
        self._save(EPOCH.format(number), arrays, {"epoch": number})
        last = settings.average if settings.final == "average" else 2
        needed = {*range(number, number - last, -1), self.best_epoch()}
        for old in {*range(1, number)} - needed:
            self._at(EPOCH.format(old)).unlink(missing_ok=True)

    def final_parameters(self, settings):
        """Dict of the parameters that the run ends with, and their epochs."""
        number = len(self.validation_losses())
        if settings.final == "last":
            chosen = [number]
        elif settings.final == "best":
            chosen = [self.best_epoch()]
        else:
            first = max(1, number + 1 - settings.average)
            chosen = list(range(first, number + 1))
        epochs = [self._epoch(i) for i in chosen]
        where = f"epoch {chosen[0]}"
        if len(chosen) > 1:
            where = f"epochs {chosen[0]} to {chosen[-1]}, averaged"
        return {
            name: np.mean([epoch[name] for epoch in epochs], 0).astype(x.dtype)
            for name, x in epochs[-1].items()
        }, where

    def _epoch(self, number):
        epoch = self._load(EPOCH.format(number))
        if epoch is None:
            path = self._at(EPOCH.format(number))
            raise RunError(f"{path}, the weights of an epoch, is missing.")
        return epoch[0]

    def draw_curves(self):
        from d2l_attention.heatmaps import plot_learning_curves
        from d2l_attention.heatmaps.notebook_figures import to_png

        curves = {
            "training loss": self.points("loss"),
            "validation loss": self.points("validation_loss"),
        }
        ax = plot_learning_curves(curves, self.points("learning_rate"))
        self.write("learning_curves.png", to_png(ax.figure))

    # What came of it.

    def write_results(self, trainer):
        """Save the model, draw an alignment, and return the test's scores."""
        settings, corpus = trainer.settings, trainer.corpus
        # A plain copy, which does not need the strategy of the training.
        parameters, where = self.final_parameters(settings)
        translator = make_translator(settings, corpus.vectorizers, parameters)
        model = translator.model
        with tempfile.TemporaryDirectory() as beside:
            path = Path(beside) / "model.keras"
            model.save(path)
            self.write("model.keras", path.read_bytes())
        pairs = corpus.pairs.test
        print(
            f"Translating {len(pairs):,} test sentences with the weights of "
            f"{where}.",
            flush=True,
        )
        translations, scores = score(translator, pairs)
        shown = [tuple(map(translator.as_written, pair)) for pair in pairs]
        self.write("translations.csv", translations_csv(shown, translations))
        picture = self._at("alignment.png")
        draw(translator, pairs[0][0], translations[0], picture)
        scores = {"parameters": model.count_params(), **scores}
        self.write_json("scores.json", scores)
        return scores

    def load(self):
        """The `Translator` of its end or last checkpoint, and which it is."""
        if self._at("model.keras").exists():
            return load_translator(self.path), "the finished run"
        settings, checkpoint = self.load_settings(), self.load_checkpoint()
        if checkpoint is None:
            raise RunError(f"{self.path} has no checkpoint yet.")
        arrays, position = checkpoint
        vectorizers = self.load_vectorizers(settings.subwords)
        translator = make_translator(settings, vectorizers, arrays)
        return translator, f"the checkpoint of step {position['step']:,}"

    def held_out_pairs(self):
        """The held-out pairs, a list of `(source, target)`.

        Before its end they are those of its corpus, if that is unchanged.
        """
        table = self._at("translations.csv")
        if table.exists():
            with table.open(encoding="utf-8", newline="") as file:
                rows = list(csv.reader(file))[1:]
            return [(source, target) for source, target, _ in rows]
        try:
            settings = self._settings_with_text()
        except (FileNotFoundError, DataError) as error:
            raise DataError(
                f"{error} The held-out pairs of {self.path} were in it. Put it "
                "back, or name a file of pairs."
            ) from error
        return Corpus(settings, self).pairs.test

    def describe(self):
        """What it is and how good, in sentences for those who try it."""
        settings = self.load_settings()
        name = f"{settings.languages()}: a {settings.model}"
        try:
            scores = self.read_json("scores.json")
        except RunError:
            return f"{name} that was not scored yet."
        leads = "chrf" if "note" in scores else "bleu"  # as `score` says
        value = scores[leads]["score"]
        metric = {"bleu": "BLEU", "chrf": "chrF"}[leads]
        if scores[leads].get("tokens") == "characters":
            metric += " of characters"
        told = (
            f"{name} of {scores['parameters']:,} parameters, {metric} "
            f"{value:.1f} on {scores['sentences']:,} held-out sentences."
        )
        if value < BARELY_TRAINED[leads]:
            told += " It is barely trained, so most of it will be wrong."
        return told

    def trained_sources(self):
        """The set of sources that it and the run before it were trained on.

        They are normalized, without the marks at their ends.
        """
        settings = self._settings_with_text()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the training has said it
            train = read_splits(settings).train
        sources = {without_end_marks(normalize(source)) for source, _ in train}
        if settings.resume_from:
            sources |= Run(settings.resume_from).trained_sources()
        return sources

    def _settings_with_text(self):
        """The settings, if the corpus is what it was when the run began."""
        settings = self.load_settings()
        before = self.read_json("settings.json")
        for text in changed_texts(before, settings.identity()):
            raise DataError(f"{text} has changed since this run began.")
        return settings


def load_translator(folder):
    """Load the `Translator` of a finished run.

    Args:
        folder: Path of a folder with `settings.json`, `model.keras` and the
            vocabularies, as the command `train` writes them.

    Returns:
        `Translator`.

    Raises:
        ValueError: If the folder is no run folder, if the run has not
            finished, or if a file is damaged.
    """
    folder = Path(folder)
    try:
        settings = (folder / "settings.json").read_bytes()
    except OSError as error:
        raise ValueError(f"{folder} is no run folder: {error}") from error
    if not (folder / "model.keras").exists():
        raise ValueError(f"{folder} has no trained model yet.")
    if not zipfile.is_zipfile(folder / "model.keras"):
        raise ValueError(f"{folder} is damaged: model.keras was cut short.")
    try:
        settings = json.loads(settings)
        max_length, subwords = settings["max_length"], settings.get("subwords")
        vectorizers = Run(folder).load_vectorizers(subwords)
        model = keras.saving.load_model(folder / "model.keras", compile=False)
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        zipfile.BadZipFile,
    ) as error:
        raise ValueError(f"{folder} is damaged: {error}") from error
    of_files = [v.vocabulary_size() for v in vectorizers]
    of_model = [model.source_vocab_size, model.target_vocab_size]
    if of_files != of_model:
        raise ValueError(
            f"{folder} is damaged: its vocabularies have {of_files} ids, its "
            f"model {of_model}."
        )
    longest = max_length * (PIECES_PER_TOKEN if subwords else 1)
    return Translator(model, vectorizers, longest)


def make_translator(settings, vectorizers, arrays):
    """The translator of the parameters of a run, which `arrays` holds."""
    model = settings.make_model(*(v.vocabulary_size() for v in vectorizers))
    shape = (None, settings.max_length)
    model.build({"source": shape, "target": shape})
    for name, variable in by_name(model.variables).items():
        variable.assign(arrays[name])
    return Translator(model, vectorizers, settings.longest())


def by_name(variables):
    """Dict of name to variable, in the same order.

    The names lack the numbers that Keras adds to the second model of a
    process. So another process finds the same names.
    """
    return {
        f"{i} {re.sub(r'_[0-9]+(?=[_/]|$)', '', v.path)}": v
        for i, v in enumerate(variables)
    }


def translations_csv(pairs, translations):
    """The content of a CSV file of sources, references and translations."""
    rows = [(*x, text) for x, text in zip(pairs, translations, strict=True)]
    return _csv(("source", "reference", "translation"), rows)


def _csv(columns, rows):
    text = io.StringIO(newline="")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(columns)
    table.writerows(rows)
    return text.getvalue().encode()
