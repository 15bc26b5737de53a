"""The files of a finished run: model, vocabularies, scores and a picture."""

import csv
from pathlib import Path
import sys
import tempfile
import warnings

from d2l_attention.datasets import DataError, SubwordVectorizer
from d2l_attention.datasets.files import normalize, without_end_marks
from d2l_attention.datasets.subwords import SUBWORD_FILES
from d2l_attention.translator.corpus import Corpus, read_splits
from d2l_attention.translator.epochs import final_weights
from d2l_attention.translator.run_folder import (
    RunError,
    RunFolder,
    changed_texts,
    csv_bytes,
)
from d2l_attention.translator.scores import bleu, chrf, signatures
from d2l_attention.translator.settings import load_settings
from d2l_attention.translator.trainer import by_name
from d2l_attention.translator.translator import (
    WORD_FILES,
    Translator,
    draw,
    load_translator,
    load_vectorizers,
)


def write_vocabularies(folder, vectorizers):
    """Write the words, or the pieces, of both languages.

    Args:
        folder: `RunFolder`.
        vectorizers: Pair of vectorizers, of the source and the target.

    Raises:
        RunError: If a file cannot be written.
    """
    for i, vectorizer in enumerate(vectorizers):
        if isinstance(vectorizer, SubwordVectorizer):
            folder.write(SUBWORD_FILES[i], vectorizer.model)
        else:
            words = vectorizer.get_vocabulary(include_special_tokens=False)
            folder.write(WORD_FILES[i], "\n".join(words).encode())


def write_results(folder, trainer, history):
    """Save the model, score it on the test split, and draw one alignment.

    Args:
        folder: `RunFolder`.
        trainer: `Trainer`, after the last step.
        history: Rows of the history.

    Returns:
        Dict of the scores, as in `scores.json`.

    Raises:
        RunError: If a file cannot be written.
    """
    settings, corpus = trainer.settings, trainer.corpus
    # A plain copy, which does not need the strategy of the training.
    weights, where = final_weights(folder, settings, history)
    translator = make_translator(settings, corpus.vectorizers, weights)
    model = translator.model
    with tempfile.TemporaryDirectory() as beside:
        path = Path(beside) / "model.keras"
        model.save(path)
        folder.write("model.keras", path.read_bytes())
    pairs = corpus.pairs.test
    print(
        f"Translating {len(pairs):,} test sentences with the weights of "
        f"{where}.",
        flush=True,
    )
    found, scores = score(translator, pairs)
    folder.write("translations.csv", translations_csv(pairs, found))
    draw(translator, pairs[0][0], found[0], folder.path / "alignment.png")
    scores = {"parameters": model.count_params(), **scores}
    folder.write_json("scores.json", scores)
    return scores


def score(translator, pairs, beam=1, length_penalty=1.0):
    """Translate the sources of pairs, and compare with their targets.

    BLEU and chrF are those of normalized text, so that the scores of words
    and of subwords can be compared.

    Args:
        translator: `Translator`.
        pairs: List of N pairs `(source, target)`.
        beam: Positive int, width of the beam; 1 is greedy search.
        length_penalty: Float, as in `BeamDecoder`.

    Returns:
        List of N str, the translations; and a dict of the scores with their
        95 % intervals, of how they were found, and of sacrebleu's signatures.
    """
    sources, references = zip(*pairs, strict=True)
    _warn_of_unknown(translator, sources)
    found = translator.translate(sources, beam, length_penalty=length_penalty)
    sides = [[normalize(x) for x in side] for side in (found, references)]
    scores = {"sentences": len(found), "beam": beam}
    if beam > 1:
        scores["length_penalty"] = length_penalty
    for name, metric in (("bleu", bleu), ("chrf", chrf)):
        scores[name] = {
            key: float(value) for key, value in metric(*sides)._asdict().items()
        }
    return found, {**scores, "signatures": signatures()}


def _warn_of_unknown(translator, sources):
    """Say so where the model knows less than half of what it is to read."""
    number = sum(len(translator.tokens(text)) for text in sources)
    unknown = sum(len(translator.unknown_tokens(text)) for text in sources)
    if unknown > number / 2:
        print(
            f"The model does not know {unknown:,} of the {number:,} words that "
            "it is to translate. Are the two languages in the wrong order?",
            file=sys.stderr,
        )


def translations_csv(pairs, found):
    """The content of a CSV file of sources, references and translations."""
    rows = [(*pair, text) for pair, text in zip(pairs, found, strict=True)]
    return csv_bytes(("source", "reference", "translation"), rows)


def load_run(path):
    """The translator of a run: of its end, or of its last checkpoint.

    Args:
        path: The run folder.

    Returns:
        `Translator`, and a str that says what was loaded.

    Raises:
        ValueError: If the folder is no run folder, or damaged.
        RunError: If there is no checkpoint yet, or it is damaged.
    """
    folder = RunFolder(path)
    if (folder.path / "model.keras").exists():
        return load_translator(path), "the finished run"
    settings = load_settings(folder)
    found = folder.load_checkpoint()
    if found is None:
        raise RunError(f"{folder.path} has no checkpoint yet.")
    arrays, position = found
    vectorizers, _ = load_vectorizers(folder.path, vars(settings))
    translator = make_translator(settings, vectorizers, arrays)
    return translator, f"the checkpoint of step {position['step']:,}"


def held_out_pairs(path):
    """The held-out pairs of a run.

    Args:
        path: The run folder.

    Returns:
        List of `(source, target)`.

    Raises:
        DataError: If the run has not finished, and its corpus is not there
            any more, or is another.
    """
    folder = RunFolder(path)
    table = folder.path / "translations.csv"
    if table.exists():
        with table.open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))[1:]
        return [(source, target) for source, target, _ in rows]
    try:
        settings = _with_its_text(folder)
    except (FileNotFoundError, DataError) as error:
        raise DataError(
            f"{error} The held-out pairs of {path} were in it. Put it back, or "
            "name a file of pairs."
        ) from error
    return Corpus(settings, folder).pairs.test


def trained_sources(path):
    """The sources that a run was trained on, and the run it began with.

    Args:
        path: The run folder.

    Returns:
        Set of str, normalized and without the marks at their ends.

    Raises:
        FileNotFoundError: If a corpus is not there any more.
        DataError: If a corpus has changed.
        ValueError: If a folder is no run folder.
    """
    settings = _with_its_text(RunFolder(path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the training has said it
        train = read_splits(settings).train
    sources = {without_end_marks(normalize(source)) for source, _ in train}
    if settings.resume_from:
        sources |= trained_sources(settings.resume_from)
    return sources


def _with_its_text(folder):
    """The settings of a run whose corpus is what it was when the run began."""
    settings = load_settings(folder)
    before = folder.read_json("settings.json")
    for text in changed_texts(before, settings.identity()):
        raise DataError(f"{text} has changed since this run began.")
    return settings


def make_translator(settings, vectorizers, arrays):
    """The translator of some weights of a run.

    Args:
        settings: `Settings`.
        vectorizers: Pair of vectorizers.
        arrays: Dict of name to array, as `by_name(model.variables)`; others
            may be among them.

    Returns:
        `Translator`.
    """
    model = settings.make_model(*(v.vocabulary_size() for v in vectorizers))
    shape = (None, settings.max_length)
    model.build({"source": shape, "target": shape})
    for name, variable in by_name(model.variables).items():
        variable.assign(arrays[name])
    return Translator(model, vectorizers, settings.longest())
