"""What a corpus becomes, by the settings of a run, and what it says then."""

from d2l_attention.datasets import DataError
from d2l_attention.translator import training_corpus
from d2l_attention.translator.settings import RunError, Settings
from d2l_attention.translator.training_corpus import Corpus
import pytest


@pytest.fixture
def corpus_of(tmp_path):
    """The `Corpus` of some lines, with a setting for each keyword."""

    def make(lines, **settings):
        path = tmp_path / "pairs.tsv"
        path.write_text("\n".join(lines), encoding="utf-8")
        settings = Settings(corpus=str(path), **settings)
        return Corpus(settings, verbose=1)

    return make


def lines(number):
    return [f"Go on, {i}!\tVas-y, {i} !" for i in range(number)]


@pytest.mark.parametrize(("number", "held_out"), [(30, 3), (2000, 200)])
def test_a_small_corpus_needs_no_option_but_its_batch(
    number, held_out, corpus_of
):
    if number == 30:
        with pytest.raises(RunError, match="24 .*batch of 64.*size 16"):
            corpus_of(lines(number))
    corpus = corpus_of(lines(number), batch_size=16)
    splits = corpus.pairs.validation, corpus.pairs.test
    assert [len(pairs) for pairs in splits] == [held_out, held_out]


def test_fewer_pieces_than_asked_for_are_told(corpus_of, capsys):
    corpus = corpus_of(lines(200), subwords=8000)
    sizes = [v.vocabulary_size() for v in corpus.vectorizers]
    out = capsys.readouterr().out
    for name, size in zip(("source", "target"), sizes, strict=True):
        assert 300 < size < 8000
        assert f"The {name} vocabulary has {size:,} ids. " in out
    assert out.count("vocabulary is smaller than --subwords 8000") == 2
    corpus_of(lines(200), subwords=min(sizes))
    assert "--subwords" not in capsys.readouterr().out


def test_a_script_without_spaces_names_its_remedy(corpus_of):
    thai = [f"I see {i} .\tฉันเห็นปลา{i}" for i in range(99)]
    with pytest.raises(DataError, match="no word.*--subwords 1000"):
        corpus_of(thai, batch_size=16)


def test_the_settings_say_how_a_file_is_read(corpus_of, tmp_path):
    """The test of one's own, too."""
    own = tmp_path / "test.tsv"
    own.write_text('Stop, it is "late".\tHalte.\nbad\nworse')
    settings = {"test_corpus": str(own), "batch_size": 16, "subwords": 300}
    with pytest.raises(DataError, match="2 of 3 lines.*--max-bad-share"):
        corpus_of(lines(40), **settings)
    settings["max_bad_share"] = 0.7
    with pytest.warns(UserWarning, match="2 of 3 lines"):
        corpus = corpus_of(lines(40), **settings)
    assert corpus.pairs.test == [('Stop, it is "late".', "Halte.")]
    assert corpus.pairs.train[0][0].startswith("Go on")


@pytest.mark.parametrize("which", ["train", "validation", "test"])
def test_a_split_without_a_short_pair_is_refused(which, corpus_of, monkeypatch):
    """It would be divided by, or drawn, at the end of an epoch or a run."""
    options = {"batch_size": 16, "subwords": 300}
    long = {*sum(getattr(corpus_of(lines(60), **options).pairs, which), ())}

    def tokenize(text, vectorizer):
        return ["x"] * (33 if text in long else 32)

    monkeypatch.setattr(training_corpus, "tokenize", tokenize)
    name = {"train": "train on", "validation": "validate"}.get(which, which)
    with pytest.raises(
        RunError, match=f"No pair to {name} .* 32 pieces.*--max"
    ):
        corpus_of(lines(60), **options)
