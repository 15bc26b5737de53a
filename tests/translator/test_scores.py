from d2l_attention.translator import bleu, chrf, paired_bootstrap
import numpy as np
import pytest

REFERENCES = [
    f"the {a} {b} is on the {c} today ."
    for a in ("red", "blue", "old")
    for b in ("book", "coat", "cup", "box")
    for c in ("table", "chair", "bed")
]


def damaged(share, seed=0):
    generator = np.random.default_rng(seed)
    return [
        " ".join(
            "x" if generator.random() < share else token
            for token in text.split()
        )
        for text in REFERENCES
    ]


def test_a_perfect_translation_has_100():
    assert bleu(REFERENCES, REFERENCES).score == pytest.approx(100)
    assert chrf(REFERENCES, REFERENCES).score == pytest.approx(100)
    for n in range(1, 12):  # no rounding puts an end beyond the score
        score = bleu(["a b c d e f"] * n, ["a b c d e f"] * n)
        assert score.low <= score.score <= score.high <= 100


def test_bleu_by_hand():
    # "c," is one word: the text was split already, by spaces.
    hypothesis, reference = ["a b c, d e x"], ["a b c, d e f"]
    precisions = (5 / 6, 4 / 5, 3 / 4, 2 / 3)
    expected = 100 * np.prod(precisions) ** (1 / 4)
    assert bleu(hypothesis, reference).score == pytest.approx(expected)


def test_bleu_punishes_shortness():
    hypothesis, reference = ["a b c d e"], ["a b c d e f g"]
    expected = 100 * np.exp(1 - 7 / 5)
    assert bleu(hypothesis, reference).score == pytest.approx(expected)


def test_the_interval_holds_the_score_and_shrinks_with_data():
    found = damaged(0.2)
    few, many = bleu(found[:9], REFERENCES[:9]), bleu(found, REFERENCES)
    for score in (few, many):
        assert score.low < score.score < score.high
    assert many.high - many.low < few.high - few.low
    assert str(many).startswith(f"{many.score:.1f} [")


def test_the_bootstrap_tells_a_difference_from_none():
    good, bad = damaged(0.1), damaged(0.5)
    assert paired_bootstrap(bad, good, REFERENCES) < 0.05
    joined = [text.replace(" .", ".") for text in REFERENCES]  # other words
    assert paired_bootstrap(joined, REFERENCES, REFERENCES) < 0.05
    assert paired_bootstrap(good, good, REFERENCES) == 1
    assert paired_bootstrap(damaged(0.3, 1), damaged(0.3, 2), REFERENCES) > 0.05


@pytest.mark.parametrize("score", [bleu, chrf])
def test_a_resample_without_any_match_scores_zero(score):
    """One sentence of five is right: a third of all resamples miss it."""
    hypotheses = ["the cat sat down"] + ["q"] * 4
    references = ["the cat sat down"] + ["w"] * 4
    found = score(hypotheses, references)
    assert 0 <= found.low < found.score < found.high <= 100
    assert all(type(x) is float for x in found)


@pytest.mark.parametrize("score", [bleu, chrf])
def test_lists_of_different_lengths_are_refused(score):
    with pytest.raises(ValueError, match="1 hypotheses, 2 references"):
        score(["a"], ["a", "b"])
    with pytest.raises(ValueError, match="0 hypotheses"):
        score([], [])
