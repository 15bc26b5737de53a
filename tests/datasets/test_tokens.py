"""A word that people see as one is one; what they tell apart stays apart."""

import random
import unicodedata

from d2l_attention.datasets import SubwordVectorizer, load_pairs, tokenize
from d2l_attention.datasets.corpus import read_corpus
from d2l_attention.datasets.tokens import (
    clean,
    is_spaceless,
    is_turkic,
    join_tokens,
    normalize,
    split_tokens,
    without_end_marks,
)
from d2l_attention.datasets.vocabularies import make_vectorizers
from hypothesis import given
from hypothesis import strategies as st
import pytest

UNSEEN = "\u200b\u00ad\u200e\u200f\u2060\ufeff\u202a\u2066\u034f\u180e\x7f\x08"


@pytest.mark.parametrize("sign", UNSEEN + "\u200c\u200d", ids=ascii)
def test_a_sign_that_nobody_sees_makes_no_other_word(sign):
    for text in (
        "the light",
        "הילדה אוכלת",
        "汤姆 看见",
        "ฉันเห็น",
        "it's Donau-1",
    ):
        middle = len(text) // 2
        for at in (0, middle, len(text)):
            signed = text[:at] + sign + text[at:]
            assert clean(signed) == clean(text)
            assert normalize(signed) == normalize(text)


@pytest.mark.parametrize("sign", UNSEEN[:6], ids=ascii)
@pytest.mark.parametrize("raw", [False, True])
def test_no_test_source_is_trained_on_with_such_a_sign_in_it(
    raw, sign, tmp_path, capsys
):
    pairs = [x[:2] for x in random.Random(0).sample(read_corpus(), 600)]
    signed = [(f"{s[:5]}{sign}{s[5:]}", t) for s, t in pairs]
    lines = ["\t".join(pair) for pair in [*pairs, *signed]]
    (tmp_path / "pairs.tsv").write_text("\n".join(lines), encoding="utf-8")
    found = load_pairs(
        tmp_path / "pairs.tsv", max_length=30, num_test=100, raw=raw, verbose=1
    )
    trained = {source.replace(sign, "") for source, _ in found.train}
    assert not [x for x, _ in found.test if x.replace(sign, "") in trained]
    told = f"U+{ord(sign):04X} as nothing (600 times)"
    assert told in capsys.readouterr().out


def test_joiners_stay_where_they_make_another_word():
    persian, bengali = "می\u200cخواهم", "র\u200d্য"
    family = "\U0001f469\u200d\U0001f469\u200d\U0001f467"
    for text in (persian, "ক্\u200cষ", "ক্\u200dষ", bengali, family):
        assert clean(text) == text == normalize(text)
    for text in ("کتاب‌ها\u200c", "خانه\u200c.", "خانه\u200c است"):
        kept = text.replace("ها\u200c", "ها").replace("ه\u200c", "ه")
        assert clean(text) == kept  # where nothing follows to be parted
    assert clean("അവന്\u200d") == "അവന്\u200d"
    england = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067"
    assert clean(england) == england


@pytest.mark.parametrize(
    ("texts", "word"),
    [
        (("l’eau", "lʼeau", "l`eau", "l'eau"), "l' eau"),
        (("м’ята", "мʼята", "м'ята"), "м'ята"),
        (("Oʻzbek", "O‘zbek", "O'zbek", "O`zbek"), "o'zbek"),
        (("est‐il", "est‑il", "est-il"), "est-il"),
        (("ﬁn", "fin", "ﬁ\u00adn"), "fin"),
        (("Ａｂｃ１２", "Abc12"), "abc12"),
        (("ﺍﻟﺴﻼﻡ", "السلام"), "السلام"),
        (("ｶﾞｽ", "ガス"), "ガ ス"),
        (("coŀlegi", "col·legi"), "col·legi"),
        (('צה"ל', "צה״ל", "צה”ל"), "צה״ל"),
        (("ג׳ירפה", "ג'ירפה", "ג’ירפה"), "ג'ירפה"),
        (("e\u0301te\u0301", "été"), "été"),
        (("İstanbul", "I\u0307stanbul", "i\u0307stanbul"), "istanbul"),
        (("bogʻ", "bog'", "bog’"), "bog'"),
        (("col‧lecció", "col∙lecció", "col·lecció"), "col·lecció"),
        (("-Hello", "- hello"), "- hello"),
        (("Ήρθε·", "ήρθε ·"), "ήρθε ·"),
        (('ה"ארץ"', 'ה " ארץ "'), 'ה " ארץ "'),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_word_has_one_form(texts, word):
    assert {normalize(text) for text in texts} == {word}
    assert len({normalize(clean(text)) for text in texts}) == 1


@pytest.mark.parametrize(
    "text",
    ["¿ ½ x² № ™ … ，？！", "ß ς σ ı ŋ", "น้ำ ນ້ຳ", "ㅋㅋ", "‘yes’ “no”", "ʰa"],
)
def test_what_people_tell_apart_stays_apart(text):
    assert clean(text) == unicodedata.normalize("NFC", text)


@given(st.text(max_size=20), st.booleans())
def test_a_form_is_the_last(text, turkic):
    assert clean(clean(text)) == clean(text)
    once = normalize(text, turkic)
    assert normalize(once, turkic) == once
    assert without_end_marks(once) == without_end_marks(normalize(text))


def test_half_a_surrogate_pair_is_no_text():
    for read in (clean, normalize):
        with pytest.raises(ValueError, match=r"'a\\ud800'.*position 1"):
            read("a\ud800")


TURKISH = [
    ("light is here .", "Işık burada ."),
    ("is the light there ?", "ışık orada mı ?"),
    ("istanbul is far", "İstanbul uzak"),
    ("the girl came", "Kız geldi"),
]


def test_a_turkic_column_has_letters_i_of_its_own(tmp_path, capsys):
    assert is_turkic(x for _, x in TURKISH)
    assert not is_turkic(x for x, _ in TURKISH)
    assert not is_turkic(["He lives in Diyarbakır in his mind", *"iii"])
    lines = [f"{s} {i}\t{t} {i}" for i in range(20) for s, t in TURKISH]
    path = tmp_path / "pairs.tsv"
    path.write_text("\n".join(lines), encoding="utf-8")
    pairs = load_pairs(path, verbose=1)
    assert "the target is in a Turkic language" in capsys.readouterr().out
    words = {word for _, target in pairs.train for word in target.split()}
    assert {"ışık", "istanbul", "kız"} < words and "işık" not in words
    words = {word for source, _ in pairs.train for word in source.split()}
    assert {"is", "istanbul", "light"} < words
    english, turkish = make_vectorizers(pairs.train)
    assert tokenize("IŞIK İyi", turkish) == ["ışık", "iyi"]
    assert tokenize("IS İt", english) == ["is", "it"]
    twins = load_pairs(path, reverse=True, raw=True)
    trained = {normalize(x, turkic=True) for x, _ in twins.train}
    assert not trained & {normalize(x, turkic=True) for x, _ in twins.test}


def test_pieces_see_one_form_too():
    pieces = SubwordVectorizer.learn(["the light of l'eau"] * 9, 300)
    assert pieces.tokenize("the li\u200bght") == pieces.tokenize("the light")
    assert pieces.tokenize("l’eau") == pieces.tokenize("l'eau")


@pytest.mark.parametrize(
    ("text", "spaceless"),
    [
        ("ฉันเห็นปลาวันนี้", True),
        ("ຂ້ອຍເຫັນປາ", True),
        ("ខ្ញុំឃើញត្រី", True),
        ("ငါးကိုတွေ့တယ်", True),
        ("我看见鱼", True),
        ("魚を見た", True),
        ("나는 물고기를 본다", False),
        ("मैंने मछली देखी", False),
        ("I see a fish , 魚 .", False),
        ("", False),
    ],
)
def test_scripts_without_spaces_are_known(text, spaceless):
    assert is_spaceless([text, ""]) == spaceless


@given(st.text("ab 我魚ガ。，「」（！.[]-", max_size=20))
def test_tokens_that_were_joined_can_be_split(text):
    text = normalize(text)
    joined = join_tokens(text)
    assert split_tokens(joined) == text.split()
    assert join_tokens("[UNK] 汤 姆 昨 天 ， ok .") == "[UNK]汤姆昨天，ok ."
    assert join_tokens("他 说 ： 「 你 好 。 」") == "他说：「你好。」"
