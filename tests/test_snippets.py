"""The code of the README and of the pages runs, and prints what they show."""

from contract import needs_keras_of_the_pages
import keras
import numpy as np
from page_code import ROOT, SHOWN, blocks, run, run_shown
import pytest

BEFORE, *DIFFERENCES = (
    (ROOT / "docs" / "differences.md").read_text("utf-8").split("\n## ")
)


@pytest.fixture
def there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.every_backend
@pytest.mark.skipif(
    keras.backend.backend() == "jax", reason="the page says what JAX needs"
)
@pytest.mark.filterwarnings("ignore:Up to .* are left out:UserWarning")
def test_the_page_on_heatmaps_runs_from_top_to_bottom(there, capsys):
    two_lines, model, *others = blocks("docs/heatmaps.md")
    names = {}
    run(model, names)
    assert len(others) >= 7
    for code in (two_lines, *others):
        run(code, names)
    assert {path.name for path in there.iterdir()} == {
        "attention.html",
        "training.gif",
    }
    leaks = [x for x in capsys.readouterr().out.splitlines() if "padding" in x]
    assert len(leaks) == 4, "every head of attention_1, as the page says"
    assert all(leak.startswith("attention_1, head") for leak in leaks)


@needs_keras_of_the_pages
def test_the_page_on_lost_masks_prints_what_it_shows(there, capsys):
    page = (ROOT / "docs" / "lost_masks.md").read_text("utf-8")
    (_, two_lines), *others = SHOWN.findall(page)
    names = {}
    run_shown(others, names, capsys)
    run(two_lines, names)
    assert [leak.kind for leak in names["leaks"]] == ["padding"]


@pytest.mark.every_backend
def test_the_examples_of_the_readme_run(there):
    heatmaps, layers = blocks("README.md")
    rng = np.random.default_rng(0)
    query, key, value = (rng.normal(size=(2, n, 7)) for n in (3, 5, 5))
    names = {"query": query, "key": key, "value": value}
    run(layers, names)
    assert names["weights"].shape == (2, 3, 5)
    inputs = keras.Input((5, 8))
    attended = keras.layers.MultiHeadAttention(2, 4)(inputs, inputs)
    words = list("abcde")
    names = {
        "model": keras.Model(inputs, attended),
        "inputs": rng.normal(size=(1, 5, 8)),
        "query_words": words,
        "key_words": words,
    }
    run(heatmaps, names)
    assert [w.shape for w in names["maps"].values()] == [(1, 2, 5, 5)]


@pytest.mark.every_backend
def test_the_contract_of_the_reference_runs():
    contract, export = blocks("docs/api.md")
    run(contract, {})
    names = {}
    run(export, names)
    assert names["model"].input_shape == (None, None)
    assert names["model"].inputs[0].dtype == "int32"


def test_the_numbers_of_the_page_on_probability_are_right():
    (numbers,) = blocks("docs/probability.md")
    run(numbers, {})


@pytest.mark.every_backend
@needs_keras_of_the_pages
@pytest.mark.parametrize(
    "section", DIFFERENCES, ids=lambda section: section.partition("\n")[0]
)
def test_a_section_on_differences_prints_what_it_shows(section, capsys):
    (setup,) = SHOWN.findall(BEFORE)
    code, output = SHOWN.findall(section)
    if "import torch" in code[1]:
        pytest.importorskip("torch")
    run_shown([setup, code, output], {}, capsys)
