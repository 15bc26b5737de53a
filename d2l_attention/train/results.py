"""The files of a finished run: model, vocabularies, scores and a picture."""

from pathlib import Path
import tempfile

from d2l_attention.datasets import SubwordVectorizer
from d2l_attention.datasets.files import normalize
from d2l_attention.datasets.subwords import SUBWORD_FILES
from d2l_attention.metrics import bleu, chrf
from d2l_attention.translator import WORD_FILES, Translator, draw


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


def write_results(folder, trainer):
    """Save the model, score it on the test split, and draw one alignment.

    Args:
        folder: `RunFolder`.
        trainer: `Trainer`, after the last step.

    Returns:
        Dict of the scores, as in `scores.json`.

    Raises:
        RunError: If a file cannot be written.
    """
    settings, corpus = trainer.settings, trainer.corpus
    # A plain copy, which does not need the strategy of the training.
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
    translator = Translator(model, corpus.vectorizers, settings.longest())
    sources, references = zip(*corpus.pairs.test, strict=True)
    print(f"Translating {len(sources):,} test sentences.", flush=True)
    found = translator.translate(sources)
    rows = zip(sources, references, found, strict=True)
    columns = ("source", "reference", "translation")
    folder.write_csv("translations.csv", columns, rows)
    draw(translator, sources[0], found[0], folder.path / "alignment.png")
    scores = {"sentences": len(found), "parameters": model.count_params()}
    for name, metric in (("bleu", bleu), ("chrf", chrf)):
        # In normalized text, so that words and subwords can be compared.
        sides = ([normalize(x) for x in side] for side in (found, references))
        score = metric(*sides)
        scores[name] = {k: float(v) for k, v in score._asdict().items()}
    folder.write_json("scores.json", scores)
    return scores
