"""What a run begins with: settings of a file, and the model of another run."""

import csv
import json
import re
import shutil

from d2l_attention.translator import load_translator
from d2l_attention.translator.commands.evaluate import main as evaluate
from d2l_attention.translator.commands.train import main as train
from d2l_attention.translator.run_folder import Run
from d2l_attention.translator.settings import RunError, Settings
from d2l_attention.translator.settings_file import file_options
from d2l_attention.translator.training_corpus import Corpus
from d2l_attention.translator.warm_start import load_initial_translator
import numpy as np
import pytest

pytestmark = pytest.mark.ci
BESIDE = ["--samples=0", "--checkpoint-every=5"]


def settings_in(run):
    return json.loads((run / "settings.json").read_text())


def weights_of(run):
    return [np.array(x) for x in load_translator(run).model.trainable_variables]


@pytest.mark.parametrize(
    ("given", "differ"),
    [
        # nothing is learned at this rate: the weights are those of the other
        (["--learning-rate=0", "--epochs=1"], {"learning_rate", "epochs"}),
        (["--max-length=6", "--seed=3"], {"max_length", "seed"}),
    ],
)
def test_a_run_begins_with_another_and_its_settings(
    given, differ, finished, losses, tmp_path, capsys
):
    run = tmp_path / "more"
    words = [str(run), f"--resume-from={finished}", *given, *BESIDE]
    assert train(words) == 0
    out, err = capsys.readouterr()
    assert f"the weights of {finished}: the finished run." in out
    assert ("trained on sentences that are held back" in err) == (
        "seed" in differ
    )
    here, there = settings_in(run), settings_in(finished)
    assert {x for x in here if here[x] != there[x]} == {*differ, "resume_from"}
    for name in ("source_vocabulary.txt", "target_vocabulary.txt"):
        assert (run / name).read_bytes() == (finished / name).read_bytes()
    pairs = list(zip(weights_of(run), weights_of(finished), strict=True))
    same = all((a == b).all() for a, b in pairs)
    assert same == ("learning_rate" in differ)
    assert losses(run)[0] < 0.8 * losses(finished)[0]


def test_it_goes_on_when_the_first_run_is_gone(finished, tmp_path, capsys):
    first, run = tmp_path / "first", tmp_path / "more"
    shutil.copytree(finished, first)
    words = [str(run), f"--resume-from={first}", "--epochs=1", *BESIDE]
    assert train(words) == 0
    shutil.rmtree(first)
    before = (run / "history.csv").read_bytes()
    for name in ("model.keras", "translations.csv"):
        (run / name).unlink()
    pairs = Run(run).held_out_pairs()  # of the corpus
    assert pairs == Run(finished).held_out_pairs()
    capsys.readouterr()
    assert train(words) == 0
    assert "is finished: it has 22 steps" in capsys.readouterr().out
    assert (run / "history.csv").read_bytes() == before
    assert (run / "model.keras").exists()


def test_pieces_are_those_of_the_first_run(small_run, tmp_path):
    """Also where the text to go on with has other characters."""
    corpus = tmp_path / "pairs.tsv"
    corpus.write_text(
        "\n".join(f"go {i} ő\tva {i} ő" for i in range(300)), encoding="utf-8"
    )
    first, run = tmp_path / "first", tmp_path / "more"
    assert train(small_run(first, subwords=400, epochs=1)) == 0
    words = [str(run), f"--resume-from={first}", f"--corpus={corpus}"]
    words += ["--num-pairs=250", *BESIDE]
    assert train(words) == 0
    for name in ("source_subwords.model", "target_subwords.model"):
        assert (run / name).read_bytes() == (first / name).read_bytes()
    settings = Run(run).load_settings()
    assert settings.subwords == 400 and settings.corpus == str(corpus)
    again = Corpus(settings, Run(run)).vectorizers[0]
    assert again.model == (first / "source_subwords.model").read_bytes()


def test_a_run_that_has_not_finished_will_do(finished, tmp_path, capsys):
    first = tmp_path / "first"
    shutil.copytree(finished, first)
    (first / "model.keras").unlink()
    settings = Settings(**{**without_checksums(first), "resume_from": first})
    folder = Run(tmp_path / "more")
    found = load_initial_translator(settings, folder, verbose=1)
    assert "the checkpoint of step 44" in capsys.readouterr().out
    for a, b in zip(
        found.model.trainable_variables, weights_of(finished), strict=True
    ):
        np.testing.assert_array_equal(np.array(a), b)


def without_checksums(run):
    found = settings_in(run)
    return {k: v for k, v in found.items() if not k.endswith("sha256")}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--resume-from={one}", "--dim=32"], "dim=32 here, 16 there"),
        (["--resume-from={one}", "--subwords=400"], "subwords=400 here, None"),
        (["--resume-from={here}/none"], "none is no run folder"),
        (["--resume-from={here}/more"], "names another folder"),
        (["--settings={here}/none.toml"], "Could not read .*none.toml"),
        (["--settings={here}/mine.txt"], "a .toml or .json file.*mine.txt"),
    ],
)
def test_what_cannot_begin_is_refused_and_leaves_nothing(
    words, told, finished, tmp_path, capsys
):
    words = [word.format(one=finished, here=tmp_path) for word in words]
    assert train([str(tmp_path / "more"), *words]) == 2
    err = capsys.readouterr().err
    assert err.startswith("RunError: ") and err.count("\n") == 1
    assert re.search(told, err)
    assert not (tmp_path / "more").exists()


TOML = """
model = "rnnsearch"
dim = 24
learning-rate = 0.5
normalize_first = true
xla = false
reverse = true
columns = [2, 1]
corpus = ["a.en", "a.fr"]
"""


def test_a_file_of_settings_is_a_command_line(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(TOML)
    expected = {
        "--model=rnnsearch",
        "--dim=24",
        "--learning-rate=0.5",
        "--normalize-first",
        "--no-xla",
        "--reverse",
        "--columns=2,1",
        "--corpus=a.en,a.fr",
    }
    assert {*file_options(path)} == expected


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.toml", "dims = 3", "no setting: dims. The settings are model, dim"),
        ("a.toml", "dim = ", "Could not read"),
        ("a.json", '{"dim": 3', "Could not read"),
        ("a.json", "[3]", "names and values"),
        ("a.toml", "xla = 'yes'", "a.toml: xla must be true or false.*'yes'"),
        ("a.toml", "epochs = 'ten'", "a.toml: argument --epochs: invalid"),
        ("a.json", '{"dim": 0}', "a.json: .*--dim: must be at least 1"),
    ],
)
def test_a_file_that_holds_no_settings_is_refused(
    name, content, told, tmp_path
):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(RunError, match=told):
        file_options(path)


def test_the_settings_of_a_run_make_the_same_run(finished, tmp_path, capsys):
    """And the command line wins over the file."""
    run = tmp_path / "again"
    words = [f"--settings={finished / 'settings.json'}", "--epochs=1", *BESIDE]
    assert train([str(run), *words]) == 0
    expected = {**settings_in(finished), "epochs": 1}
    assert settings_in(run) == expected
    changed = {**expected, "corpus_sha256": "0"}
    (tmp_path / "other.json").write_text(
        json.dumps(changed), encoding="utf-8-sig"
    )
    words = [str(run), f"--settings={tmp_path / 'other.json'}", "--epochs=2"]
    assert train(words) == 2
    err = capsys.readouterr().err
    assert "epochs: 1 there, 2 now" in err
    assert "the shipped corpus has changed" in err


def test_aligned_files_and_a_test_of_ones_own(small_run, tmp_path, capsys):
    """From the files to the scores."""
    pairs = [(f"go {i} now", f"va {i}") for i in range(200)]
    sides = zip(*pairs, strict=True)
    for name, side in zip(("a.en", "a.fr"), sides, strict=True):
        (tmp_path / name).write_text("\n".join(side))
    own = tmp_path / "test.tsv"
    own.write_text("Go 7 now\tva 7\nstop\thalte\nstop\tva")
    corpus = f"{tmp_path / 'a.en'},{tmp_path / 'a.fr'}"
    run = tmp_path / "run"
    options = {"corpus": corpus, "test_corpus": own, "num_pairs": 190}
    options |= {"min_frequency": 1, "epochs": 1, "batch_size": 16}
    assert train(small_run(run, **options)) == 0
    assert "Left: 150 to train on, 40 to validate, and 3 to test" in (
        capsys.readouterr().out
    )
    found = settings_in(run)
    assert found["corpus"] == corpus.split(",")
    digests = [*found["corpus_sha256"], found["test_corpus_sha256"]]
    assert [len(x) for x in digests] == [64, 64, 64] and len({*digests}) == 3
    with (run / "translations.csv").open(newline="") as file:
        sources = [row["source"] for row in csv.DictReader(file)]
    assert sources == ["go 7 now", "stop", "stop"]
    assert evaluate([str(run), corpus]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["sentences"] == 200 and "Left out" not in err
    own.write_text("stop\thalte")  # another test is another run
    assert train(small_run(run, **options)) == 2
    assert f"{own} has changed since" in capsys.readouterr().err


@pytest.fixture
def on_a_file(small_run, runs):
    """A finished run on a file, and the file."""
    run, corpus = runs / "file", runs / "pairs.tsv"
    lines = [f"Go {i} now!\tva {i}" for i in range(300)]
    corpus.write_text("\n".join(lines))
    if not (run / "scores.json").exists():
        options = {"corpus": corpus, "num_pairs": 300, "epochs": 1}
        assert train(small_run(run, **options)) == 0
    return run, corpus


def trained_pairs(run, number):
    settings = Run(run).load_settings()
    return Corpus(settings, Run(run)).pairs.train[:number]


def test_evaluating_what_was_trained_on_is_told(on_a_file, tmp_path, capsys):
    run, _ = on_a_file
    learned = trained_pairs(run, 7)
    lines = [f"{s.upper().strip('! ')}?\t{t}" for s, t in learned]
    lines += ["source\ttarget", "wait\tattends"]
    own = tmp_path / "own.tsv"
    own.write_text("\n".join(lines))
    more = tmp_path / "more"  # another text, and the weights of the first run
    other = tmp_path / "other.tsv"
    other.write_text("\n".join(f"run {i}\tcours {i}" for i in range(99)))
    words = [str(more), f"--resume-from={run}", f"--corpus={other}", *BESIDE]
    assert train([*words, "--batch-size=16", "--num-pairs=99"]) == 0
    capsys.readouterr()
    for folder in (run, more):
        assert evaluate([str(folder), str(own)]) == 0
        assert "was trained on 7 of these 9" in capsys.readouterr().err
    own.write_text("\n".join(lines[7:]))
    assert evaluate([str(run), str(own)]) == 0
    assert f"{own}: 1 of 2 pairs look like names of" in capsys.readouterr().err
    own.write_text("\n".join(lines[8:]))
    assert evaluate([str(run), str(own)]) == 0
    assert "trained on" not in capsys.readouterr().err
    assert evaluate([str(run)]) == 0  # what was held out
    assert "trained on" not in capsys.readouterr().err


@pytest.mark.parametrize("gone", [True, False])
def test_a_text_that_is_gone_or_changed(gone, on_a_file, tmp_path, capsys):
    finished, corpus = on_a_file
    run, kept = tmp_path / "run", corpus.read_text()
    shutil.copytree(finished, run)
    own = tmp_path / "own.tsv"
    own.write_text("stop\thalte")
    corpus.unlink() if gone else corpus.write_text(kept + "\nstop\tva")
    what = f"There is no file {corpus}."
    if not gone:
        what = f"{corpus} has changed since this run began."
    try:
        assert evaluate([str(run), str(own)]) == 0  # with the model that it has
        err = capsys.readouterr().err
        assert f"trained on these pairs is not known: {what}" in err
        assert evaluate([str(run)]) == 0
        assert str(corpus) not in capsys.readouterr().err
        for name in ("model.keras", "translations.csv"):
            (run / name).unlink()
        assert evaluate([str(run)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert what in line and "name a file of pairs" in line
        words = [f"--settings={run / 'settings.json'}", *BESIDE]
        assert train([str(run), *words]) == 2
        *_, line = capsys.readouterr().err.splitlines()
        assert what.rstrip(".") in line
        assert ("--corpus" if gone else "Put the old text back") in line
    finally:
        corpus.write_text(kept)


def test_a_text_that_has_moved_goes_on(on_a_file, tmp_path, capsys):
    finished, corpus = on_a_file
    run, moved = tmp_path / "run", tmp_path / "moved.tsv"
    shutil.copytree(finished, run)
    shutil.copy(corpus, moved)
    words = [f"--settings={run / 'settings.json'}", f"--corpus={moved}"]
    assert train([str(run), *words, *BESIDE]) == 0
    assert "is finished" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--corpus", "--test-corpus"])
def test_a_file_that_is_not_there_is_told(option, tmp_path, capsys):
    assert train([str(tmp_path / "run"), f"{option}=none.tsv"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "There is no file none.tsv." in line and f"{option} " in line
    assert train([str(tmp_path / "run"), f"{option}=none.en,none.fr"]) == 2
    assert "There is no file none.en." in capsys.readouterr().err
