"""The shipped corpus: what its README promises."""

from collections import Counter
import importlib.util
from pathlib import Path
import sys

from d2l_attention.datasets import load_alignments, load_pairs, load_tags
from d2l_attention.datasets.corpus import corpus_path, read_corpus
from d2l_attention.datasets.tokens import normalize
import pytest

DATA = Path(__file__).parents[2] / "data"
UPOS = set(
    "ADJ ADP ADV AUX CCONJ DET NOUN NUM PART PRON PROPN PUNCT SCONJ "
    "VERB".split()
)


@pytest.mark.ci
def test_the_committed_file_is_what_the_grammar_writes(monkeypatch):
    monkeypatch.syspath_prepend(str(DATA))
    spec = importlib.util.spec_from_file_location(
        "make_eng_fra", DATA / "make_eng_fra.py"
    )
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "make_eng_fra", module)
    spec.loader.exec_module(module)
    assert [tuple(pair) for pair in module.generate()] == [
        tuple(sentence) for sentence in read_corpus()
    ]


def test_every_line_is_whole():
    for sentence in read_corpus():
        source, target = sentence.source.split(), sentence.target.split()
        assert 4 <= len(source) <= 24 and 4 <= len(target) <= 24, sentence
        assert len(sentence.source_tags.split()) == len(source), sentence
        assert len(sentence.target_tags.split()) == len(target), sentence
        links = [link.split("-") for link in sentence.alignment.split()]
        assert links, sentence
        for i, j in links:
            assert int(i) < len(source) and int(j) < len(target), sentence
        tags = f"{sentence.source_tags} {sentence.target_tags}".split()
        assert set(tags) <= UPOS, sentence


def test_text_is_normalized_already():
    for sentence in read_corpus():
        assert normalize(sentence.source) == sentence.source
        assert normalize(sentence.target) == sentence.target


def test_sizes_are_as_promised():
    corpus = read_corpus()
    assert len(corpus) >= 20_000
    assert len({s.source for s in corpus}) == len(corpus)
    for side in (0, 1):
        counts = Counter(token for s in corpus for token in s[side].split())
        assert 300 <= len(counts) <= 600
        assert min(counts.values()) >= 10


def test_splits_share_no_source_sentence_and_keep_their_lengths():
    pairs = load_pairs(max_length=12)
    sources = [{s for s, _ in split} for split in pairs]
    assert sum(map(len, sources)) == len(set().union(*sources))
    assert all(len(split) >= 1000 for split in pairs)
    for split, (low, high) in zip(
        pairs, [(4, 12)] * 3 + [(13, 24)], strict=True
    ):
        lengths = [max(len(x.split()) for x in pair) for pair in split]
        assert low <= min(lengths) and max(lengths) <= high


def test_the_seed_decides_who_goes_where():
    first, again, other = (load_pairs(seed=seed).test for seed in (1, 1, 2))
    assert first == again != other


def test_alignments_and_tags_follow_their_pairs():
    pairs = load_pairs().test[:5]
    for (source, target), links, (source_tags, target_tags) in zip(
        pairs, load_alignments(pairs), load_tags(pairs), strict=True
    ):
        source, target = source.split(), target.split()
        assert (len(source) - 1, len(target) - 1) in links  # full stops
        assert len(source_tags) == len(source)
        assert target_tags[-1] == "PUNCT"


def test_a_pair_of_another_corpus_has_no_alignment():
    with pytest.raises(KeyError):
        load_alignments([("go .", "va !")])


def test_the_file_is_found():
    assert corpus_path().name == "eng-fra.tsv"
