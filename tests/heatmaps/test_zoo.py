"""Each attention of the zoo gives its true map, or is named: none is lost."""

import re
import warnings

from contract import to_numpy
from d2l_attention.heatmaps import get_attention_weights
from d2l_attention.heatmaps.capture import Run
from keras import tree
import numpy as np
import pytest
from zoo import CASES, HEARD, telling
from zoo_of_operations import BEFORE


def ask(model, *args, **kwargs):
    """Outputs, maps, and the reasons why there are no others."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            outputs, maps = get_attention_weights(model, *args, **kwargs)
        except ValueError as error:
            said = re.findall("\n  (.*?): (.*)", str(error))
            return model(*args, **kwargs), {}, dict(said)
    return outputs, dict(maps), maps.skipped


@pytest.mark.parametrize("build", CASES.values())
def test_each_attention_gives_its_true_map_or_is_named(build):
    model, inputs, paths, named, options = build()
    model(*inputs, **options)  # builds it
    with telling() as told:
        plain = model(*inputs, **options)
    outputs, maps, skipped = ask(model, *inputs, **options)
    for found, wanted in zip(
        tree.flatten(outputs), tree.flatten(plain), strict=True
    ):
        np.testing.assert_array_equal(to_numpy(found), to_numpy(wanted))
    assert list(maps) == paths, skipped
    for weights, truth in zip(maps.values(), told, strict=True):
        assert np.ptp(truth, axis=-1).max() > 0.04  # no even map passes
        np.testing.assert_allclose(weights, truth, atol=1e-5)
    assert skipped.keys() == named.keys()
    for name, reason in named.items():
        assert reason in skipped[name]


def of_any_backend(name):
    marks = [x for x in CASES[name].marks if x.name != "every_backend"]
    return pytest.param(name, marks=marks, id=name)


@pytest.mark.parametrize("name", map(of_any_backend, BEFORE))
def test_a_map_that_is_guessed_is_true_or_named(name, monkeypatch):
    """Where no operation is heard, as on JAX, softmaxes are tried out."""
    monkeypatch.setattr(Run, "_listener_of_operations", lambda self: None)
    model, inputs, paths, named, options = CASES[name].values[0]()
    model(*inputs, **options)
    with telling() as told:
        model(*inputs, **options)
    _, maps, skipped = ask(model, *inputs, **options)
    if name not in HEARD:
        assert list(maps) == paths
        assert skipped.keys() == named.keys()
        assert all(reason in skipped[x] for x, reason in named.items())
    waiting = iter(told)
    for weights in maps.values():
        assert any(is_true(weights, truth) for truth in waiting)


def is_true(weights, truth):
    """A row that counts for nothing in the output may be empty."""
    if weights.shape != truth.shape:
        return False
    truth = np.where(weights.any(-1, keepdims=True), truth, 0)
    return np.allclose(weights, truth, atol=1e-5)
