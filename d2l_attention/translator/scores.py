"""Score translations: BLEU and chrF, computed by sacrebleu."""

import sys
from typing import NamedTuple

from d2l_attention.datasets.tokens import (
    is_spaceless,
    normalize,
    split_tokens,
)
from d2l_attention.datasets.vocabularies import SubwordVectorizer

RESAMPLES = 1000  # of the test set, for an interval or a test
UNKNOWN = "[UNK]"  # in place of a word that the vocabulary lacks
LONGEST_RUN = 4  # tokens that BLEU compares together


class Score(NamedTuple):
    """A corpus score in percent, with its 95 % bootstrap interval."""

    score: float
    low: float
    high: float

    def __str__(self):
        return f"{self.score:.1f} [{self.low:.1f}, {self.high:.1f}]"


def bleu(hypotheses, references):
    """Corpus BLEU of sentences tokenized by spaces, or of characters.

    Source: Papineni et al. (2002), computed by `sacrebleu.metrics.BLEU` with
    `tokenize="none"`, because the text is tokenized already. Where most
    letters of the references are of a script that puts no spaces between
    words (Chinese, Japanese, Thai, Lao, Khmer, Burmese), the tokens are
    characters, `tokenize="char"`. Scores of texts that were tokenized
    differently cannot be compared. BLEU is 0 where no sentence has four
    tokens; read chrF there.

    Args:
        hypotheses: List of N str, one translation for each sentence.
        references: List of N str.

    Returns:
        `Score(score, low, high)`.

    Raises:
        ValueError: If the lists are empty or differ in length.
    """
    return _score(_make_bleu(references), hypotheses, references)


def chrf(hypotheses, references):
    """Corpus chrF: how many character n-grams agree.

    Source: Popović (2015), computed by `sacrebleu.metrics.CHRF`.

    Args:
        hypotheses, references: As in `bleu`.

    Returns:
        `Score(score, low, high)`.

    Raises:
        ValueError: If the lists are empty or differ in length.
    """
    return _score(_make_chrf(), hypotheses, references)


def paired_bootstrap(baseline, system, references):
    """Test whether two systems differ in BLEU.

    Source: Koehn (2004), computed by sacrebleu's `PairedTest`.

    Args:
        baseline, system: Lists of N str, the translations of two systems.
        references: List of N str.

    Returns:
        Float p-value: how often resampling alone gives such a difference. It
        is 1 for two systems of one BLEU.

    Raises:
        ValueError: If the lists are empty or differ in length.
    """
    from sacrebleu.significance import PairedTest

    _check(baseline, references)
    _check(system, references)
    test = PairedTest(
        [("baseline", list(baseline)), ("system", list(system))],
        {"BLEU": _make_bleu(references)},
        references=[list(references)],
        test_type="bs",
        n_samples=RESAMPLES,
    )
    _, results = test()
    first, second = results["BLEU"]
    # sacrebleu asks for a larger difference, and gives two equal systems 0.001.
    return 1.0 if first.score == second.score else second.p_value


def score(translator, pairs, beam=1, length_penalty=1.0):
    """Translate the sources of pairs, and compare with their targets.

    BLEU and chrF are those of normalized text, so that the scores of words
    and of subwords can be compared. The translations come back, and a dict.
    chrF stands first in it, with a note, where BLEU compares too little.
    """
    sources, references = zip(*pairs, strict=True)
    _warn_of_unknown(translator, sources)
    translations = translator.translate(
        sources, beam, length_penalty=length_penalty
    )
    vectorizer = translator.vectorizers[1]
    turkic = getattr(vectorizer, "turkic", False)
    right = [normalize(text, turkic) for text in references]
    if isinstance(vectorizer, SubwordVectorizer):
        found = [normalize(text, turkic) for text in translations]
    else:  # what a model of words writes is normalized; [UNK] is one token
        found = [
            " ".join(split_tokens(text.replace(UNKNOWN, "\ufffd")))
            for text in translations
        ]
    scores = {"sentences": len(translations), "beam": beam}
    if beam > 1:
        scores["length_penalty"] = length_penalty
    spaceless = is_spaceless(right)
    long = sum(
        len(text.replace(" ", "") if spaceless else text.split()) >= LONGEST_RUN
        for text in right
    )
    metrics = {"bleu": bleu, "chrf": chrf}
    if 2 * long < len(right):
        metrics = {"chrf": chrf, "bleu": bleu}
        scores["note"] = (
            f"BLEU compares runs of {LONGEST_RUN} tokens, and only {long:,} of "
            f"{len(right):,} references have as many. Read chrF."
        )
    for name, metric in metrics.items():
        scores[name] = {
            key: float(value)
            for key, value in metric(found, right)._asdict().items()
        }
    scores["bleu"]["tokens"] = "characters" if spaceless else "words"
    return translations, {**scores, "signatures": _signatures(right)}


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


def _signatures(references):
    """Dict of how `bleu` and `chrf` compute, in sacrebleu's words."""
    metrics = {"bleu": _make_bleu(references), "chrf": _make_chrf()}
    for metric in metrics.values():  # they know it only after a score
        metric.corpus_score(["a"], [["a"]], n_bootstrap=RESAMPLES)
    return {name: str(x.get_signature()) for name, x in metrics.items()}


def _make_bleu(references):
    from sacrebleu.metrics import BLEU

    tokenize = "char" if is_spaceless(references) else "none"
    return BLEU(tokenize=tokenize, force=True)


def _make_chrf():
    """sacrebleu's chrF, with a bootstrap that allows resamples of score 0.

    sacrebleu 2.6 computes the score of a resample from float32 statistics.
    The result is a float where it is 0 and a float32 elsewhere, and
    `statistics.mean` refuses to mix the two. So the statistics become floats
    here, in a method that has no public name.
    """
    from sacrebleu.metrics import CHRF

    class FloatCHRF(CHRF):
        def _compute_score_from_stats(self, statistics):
            return super()._compute_score_from_stats(
                [float(x) for x in statistics]
            )

    return FloatCHRF()


def _score(metric, hypotheses, references):
    _check(hypotheses, references)
    result = metric.corpus_score(
        list(hypotheses), [list(references)], n_bootstrap=RESAMPLES
    )
    mean, half_width = _mean_and_half_width(result)
    # The interval is symmetric, so it may reach beyond the scale.
    ends = (mean - half_width, mean + half_width)
    low, high = (min(max(float(end), 0.0), 100.0) for end in ends)
    return Score(min(float(result.score), 100.0), low, high)


def _mean_and_half_width(result):
    """Mean of the resamples' scores, and half the width of their interval.

    sacrebleu's only public way to them is a text with rounded numbers.
    """
    return result._mean, result._ci


def _check(hypotheses, references):
    if not len(hypotheses) == len(references) > 0:
        raise ValueError(
            "There must be one hypothesis for each reference, and at least "
            f"one. Received: {len(hypotheses)} hypotheses, "
            f"{len(references)} references."
        )
