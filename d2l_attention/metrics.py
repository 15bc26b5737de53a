"""How good translations are: BLEU and chrF, by sacrebleu."""

from typing import NamedTuple


class Score(NamedTuple):
    """A corpus score in percent, with its 95 % bootstrap interval."""

    score: float
    low: float
    high: float

    def __str__(self):
        return f"{self.score:.1f} [{self.low:.1f}, {self.high:.1f}]"


def bleu(hypotheses, references, num_bootstrap=1000):
    """Corpus BLEU of sentences tokenized by spaces.

    Source: Papineni et al. (2002); computed by `sacrebleu.metrics.BLEU` with
    `tokenize="none"`, since the text is tokenized already. Scores of
    differently tokenized text do not compare.

    Args:
        hypotheses: List of str, one translation per sentence.
        references: List of str, the same length.
        num_bootstrap: Int, resamples of the test set for the interval.

    Returns:
        `Score(score, low, high)`.

    Raises:
        ValueError: If the lists are empty or differ in length.
    """
    from sacrebleu.metrics import BLEU

    metric = BLEU(tokenize="none", force=True)
    return _score(metric, hypotheses, references, num_bootstrap)


def chrf(hypotheses, references, num_bootstrap=1000):
    """Corpus chrF: how many character n-grams agree. Arguments as in `bleu`.

    Source: Popović (2015); computed by `sacrebleu.metrics.CHRF`.
    """
    return _score(_make_chrf(), hypotheses, references, num_bootstrap)


def paired_bootstrap(baseline, system, references, num_bootstrap=1000):
    """How sure it is that two systems differ in BLEU.

    Source: Koehn (2004); computed by sacrebleu's `PairedTest`.

    Args:
        baseline: List of str, translations of one system.
        system: List of str, translations of the other.
        references: List of str, the same length.
        num_bootstrap: Int, resamples of the test set.

    Returns:
        Float p-value: how often resampling alone makes such a difference.

    Raises:
        ValueError: If the lists are empty or differ in length.
    """
    from sacrebleu.metrics import BLEU
    from sacrebleu.significance import PairedTest

    _check(baseline, references)
    _check(system, references)
    test = PairedTest(
        [("baseline", list(baseline)), ("system", list(system))],
        {"BLEU": BLEU(tokenize="none", force=True)},
        references=[list(references)],
        test_type="bs",
        n_samples=num_bootstrap,
    )
    _, results = test()
    return results["BLEU"][1].p_value


def _make_chrf():
    """sacrebleu's chrF, whose bootstrap also works where a resample scores 0.

    sacrebleu 2.6 hands float32 statistics to its score, which answers with a
    float for 0 and a float32 otherwise, and cannot average the two.
    """
    from sacrebleu.metrics import CHRF

    class FloatCHRF(CHRF):
        def _compute_score_from_stats(self, statistics):
            return super()._compute_score_from_stats(
                [float(x) for x in statistics]
            )

    return FloatCHRF()


def _score(metric, hypotheses, references, num_bootstrap):
    _check(hypotheses, references)
    result = metric.corpus_score(
        list(hypotheses), [list(references)], n_bootstrap=num_bootstrap
    )
    # The interval is as wide on both sides, and so may leave the scale.
    low = max(result._mean - result._ci, 0.0)
    high = min(result._mean + result._ci, 100.0)
    return Score(min(float(result.score), 100.0), low, high)


def _check(hypotheses, references):
    if not len(hypotheses) == len(references) > 0:
        raise ValueError(
            "There must be one hypothesis for each reference, and at least "
            f"one. Received: {len(hypotheses)} hypotheses, "
            f"{len(references)} references."
        )
