"""Marginals against enumeration, and what they reduce to."""

import itertools

from contract import (
    CAN_COMPILE,
    assert_same,
    attention_inputs,
    draw,
    gradients,
    to_numpy,
)
from d2l_attention import StructuredAttention, linear_chain_marginals
import keras
import numpy as np
import pytest


def enumerated(unary, transitions):
    """Marginals `(S, C)` by adding up every assignment, in float64."""
    places, states = unary.shape
    total, found = 0.0, np.zeros((places, states))
    for z in itertools.product(range(states), repeat=places):
        score = sum(unary[j, c] for j, c in enumerate(z))
        score += sum(transitions[a, b] for a, b in itertools.pairwise(z))
        total += np.exp(score)
        for j, c in enumerate(z):
            found[j, c] += np.exp(score)
    return found / total


@pytest.mark.every_backend
@pytest.mark.parametrize(
    ("places", "states"), [(1, 2), (2, 2), (7, 2), (10, 2), (1, 3), (6, 3)]
)
def test_marginals_equal_brute_force(places, states):
    unary, transitions = 2 * draw(places, states), 2 * draw(states, states)
    np.testing.assert_allclose(
        to_numpy(linear_chain_marginals(unary, transitions)),
        enumerated(unary.astype("float64"), transitions.astype("float64")),
        atol=1e-5,
    )


def test_a_mask_takes_places_out_of_the_chain():
    unary, transitions = draw(2, 9, 2), 2 * draw(2, 2)
    mask = np.array([[1, 1, 0, 1, 0, 0, 1, 1, 1], [0, 1, 1, 1, 1, 0, 0, 0, 0]])
    found = to_numpy(linear_chain_marginals(unary, transitions, mask > 0))
    for row, scores, counts in zip(found, unary, mask > 0, strict=True):
        np.testing.assert_allclose(
            row[counts], enumerated(scores[counts], transitions), atol=1e-5
        )
        assert (row[~counts] == 0).all()


def test_marginals_are_the_gradient_of_the_log_partition():
    """∂ log Z / ∂ unary, by differences of an enumerated log Z."""
    unary, transitions = draw(5, 2).astype("float64"), draw(2, 2)

    def log_z(unary):
        scores = [
            sum(unary[j, c] for j, c in enumerate(z))
            + sum(transitions[a, b] for a, b in itertools.pairwise(z))
            for z in itertools.product(range(2), repeat=5)
        ]
        return np.log(np.exp(scores).sum())

    found = to_numpy(linear_chain_marginals(unary, transitions))
    for j, c in np.ndindex(5, 2):
        moved = np.zeros_like(unary)
        moved[j, c] = 1e-5
        slope = (log_z(unary + moved) - log_z(unary - moved)) / 2e-5
        assert found[j, c] == pytest.approx(slope, abs=1e-5)


def test_without_transitions_places_are_chosen_each_for_itself():
    inputs = attention_inputs(5)
    query, key = inputs["query"], inputs["key"]
    _, weights = StructuredAttention(scale=1.0)(
        **inputs, return_attention_scores=True
    )
    scores = np.einsum("btk,bsk->bts", query, key)
    np.testing.assert_allclose(
        to_numpy(weights), 1 / (1 + np.exp(-scores)), atol=1e-5
    )


def test_exactly_one_choice_is_the_softmax():
    """Three states: before the choice, at it, after it."""
    scores, no = 2 * draw(8), -1e9
    transitions = np.array([[0, 0, no], [no, no, 0], [no, no, 0]], "float32")
    unary = np.zeros((8, 3), "float32")
    unary[:, 1] = scores
    unary[0, 2] = unary[-1, 0] = no
    found = to_numpy(linear_chain_marginals(unary, transitions))[:, 1]
    expected = np.exp(scores) / np.exp(scores).sum()
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_long_chains_keep_their_precision(dtype):
    unary, transitions = (50 * draw(211, 2)).astype(dtype), 5 * draw(2, 2)
    found = to_numpy(linear_chain_marginals(unary, transitions))
    assert found.dtype == "float32"
    exact = linear_chain_marginals(unary.astype("float64"), transitions)
    np.testing.assert_allclose(found, to_numpy(exact), atol=2e-5)


def make(**options):
    layer = StructuredAttention(**options)
    layer.build((None, None, 5))
    layer.transitions.assign([[0.5, -1.0], [-0.5, 1.5]])
    return layer


def test_rows_sum_to_the_expected_number_of_chosen_places():
    inputs = attention_inputs(5)
    mask = np.arange(13) % 3 != 1
    layer = make()
    output, weights = layer(
        **inputs,
        attention_mask=mask[None, None],
        return_attention_scores=True,
    )
    weights = to_numpy(weights)
    assert (weights[..., ~mask] == 0).all() and (weights.sum(-1) > 1.2).any()
    np.testing.assert_allclose(
        to_numpy(output), weights @ inputs["value"], atol=1e-5
    )
    few = {n: x if n == "query" else x[:, mask] for n, x in inputs.items()}
    np.testing.assert_allclose(
        to_numpy(output), to_numpy(layer(**few)), atol=1e-5
    )
    key_mask = np.broadcast_to(mask, (2, 13))
    np.testing.assert_array_equal(
        to_numpy(output), to_numpy(layer(**inputs, key_mask=key_mask))
    )
    nothing = layer(**inputs, attention_mask=np.zeros((11, 13), bool))
    assert (to_numpy(nothing) == 0).all()


@pytest.mark.every_backend
def test_transitions_learn_and_the_layer_is_saved(tmp_path):
    inputs = attention_inputs(5)
    query = inputs.pop("query")
    layer = make()
    output = layer(query, **inputs)
    (gradient,) = gradients(layer, query, inputs, draw(*output.shape))
    assert np.isfinite(gradient).all() and np.abs(gradient).max() > 1e-3
    tensors = [keras.Input((None, x.shape[-1])) for x in (query, query)]
    model = keras.Model(tensors, layer(tensors[0], key=tensors[1]))
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    data = [query, inputs["key"]]
    assert_same(model(data), again(data))
    model.compile(jit_compile=CAN_COMPILE)
    np.testing.assert_allclose(
        model.predict(data, verbose=0), to_numpy(model(data)), atol=1e-5
    )


@pytest.mark.every_backend
@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_half_precision(policy):
    layer = make(dtype=policy)
    inputs = attention_inputs(5)
    output, weights = layer(**inputs, return_attention_scores=True)
    exact = make()(**inputs)
    for tensor in (output, weights):
        dtype = keras.backend.standardize_dtype(tensor.dtype)
        assert dtype == policy.removeprefix("mixed_")
    np.testing.assert_allclose(
        to_numpy(output).astype("float32"), to_numpy(exact), atol=0.1
    )
