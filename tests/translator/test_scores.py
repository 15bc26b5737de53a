from d2l_attention.datasets import make_vectorizer
from d2l_attention.translator import bleu, chrf, paired_bootstrap
from d2l_attention.translator.scores import score as score_of
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


SPACELESS = {
    "Thai": ["ฉันเห็นปลาวันนี้", "แมวกินข้าวที่บ้าน"],
    "Lao": ["ຂ້ອຍເຫັນປາມື້ນີ້", "ແມວກິນເຂົ້າຢູ່ເຮືອນ"],
    "Khmer": ["ខ្ញុំឃើញត្រីថ្ងៃនេះ", "ឆ្មាស៊ីបាយនៅផ្ទះ"],
    "Burmese": ["ငါးကိုဒီနေ့တွေ့တယ်", "ကြောင်ကအိမ်မှာထမင်းစားတယ်"],
    "Chinese": ["我 今 天 看 见 鱼", "猫 在 家 吃 饭"],
}


@pytest.mark.parametrize("texts", SPACELESS.values(), ids=SPACELESS)
def test_bleu_of_characters_where_no_space_parts_words(texts):
    texts = texts * 5
    perfect = bleu(texts, texts)
    assert perfect.score == pytest.approx(100) and perfect.low > 99
    one_wrong = [f"x{text[1:]}" for text in texts]
    assert 50 < bleu(one_wrong, texts).score < 95
    assert paired_bootstrap(one_wrong, texts, texts) < 0.05


class Parrot:
    """Translates each source by itself."""

    vectorizers = make_vectorizer(["a"]), make_vectorizer(["a"])

    def translate(self, texts, *_, **__):
        return list(texts)

    def tokens(self, text):
        return text.split()

    def unknown_tokens(self, text):
        return []


@pytest.mark.parametrize(
    ("texts", "leads", "tokens"),
    [
        (["run !", "i see ."] * 9, "chrf", "words"),
        (["run !", "i see the cat ."] * 9, "bleu", "words"),
        (["我看", "好"] * 9, "chrf", "characters"),
        (["我看见鱼", "好"] * 9, "bleu", "characters"),
    ],
)
def test_the_score_that_says_more_stands_first(texts, leads, tokens):
    found, scores = score_of(Parrot(), [(x, x) for x in texts])
    assert found == texts
    assert next(x for x in scores if x in ("bleu", "chrf")) == leads
    assert ("Read chrF" in scores.get("note", "")) == (leads == "chrf")
    assert scores[leads]["score"] == pytest.approx(100)
    assert scores["bleu"]["tokens"] == tokens
    of = "char" if tokens == "characters" else "none"
    assert f"tok:{of}" in scores["signatures"]["bleu"]


@pytest.mark.parametrize(
    ("reference", "found", "of"),
    [
        ("the old cow sleeps on the mat .", "the [UNK] cow sleeps on {}", 8),
        ("这 老 牛 在 地 上 睡 觉 。", "这[UNK]牛在{}", 9),
    ],
)
def test_an_unknown_word_is_one_token(reference, found, of):
    end = "the mat ." if of == 8 else "地上睡觉。"

    class Writer(Parrot):
        def translate(self, texts, *_, **__):
            return [found.format(end) for _ in texts]

    _, scores = score_of(Writer(), [("x", reference)] * 9)
    split = reference.split()
    hypothesis = [[*split[:1], "?", *split[2:]]] * 9
    expected = bleu([" ".join(x) for x in hypothesis], [reference] * 9).score
    assert scores["bleu"]["score"] == pytest.approx(expected)
