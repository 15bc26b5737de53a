"""Results: the newest of a name, wherever the package lies."""

from d2l_attention.datasets import corpus, load_results
import pytest


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus, "corpus_path", lambda: tmp_path / "a.tsv")
    (tmp_path / "results").mkdir()
    return tmp_path / "results"


def write(folder, name, rows):
    (folder / name).write_text(rows, encoding="utf-8")


def test_the_newest_results_of_a_name_are_read(folder):
    write(folder, "2026-11-21_race.csv", "model,bleu\nold,1\n")
    write(folder, "2026-12-01_race.csv", "model,bleu\nnew,2\nother,3\n")
    write(folder, "2026-12-02_grand_race.csv", "model,bleu\nno,9\n")
    assert load_results("race") == [
        {"model": "new", "bleu": "2"},
        {"model": "other", "bleu": "3"},
    ]


def test_a_name_without_results_is_refused_and_the_others_are_named(folder):
    write(folder, "2026-12-01_race.csv", "model\n")
    with pytest.raises(ValueError, match=r"one of \['race'\].*'rice'"):
        load_results("rice")


def test_the_shipped_results_are_found():
    rows = load_results("translators")
    assert {"model", "bleu", "epochs"} <= rows[0].keys()
