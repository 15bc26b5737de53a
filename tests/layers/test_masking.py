from contract import draw, input_gradients, to_numpy
from d2l_attention import (
    HardAttention,
    causal_mask,
    masked_softmax,
    padding_mask,
    window_mask,
)
from d2l_attention.layers.context import segment_context
from d2l_attention.layers.masking import join_causal_mask, merge_masks
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from keras import ops
import numpy as np
import pytest


def softmax_by_hand(scores, mask):
    """One row at a time, in float64, over the keys that are left."""
    weights = np.zeros(scores.shape)
    for row in np.ndindex(scores.shape[:-1]):
        kept = np.flatnonzero(mask[row])
        if len(kept):
            exponentials = np.exp(scores[row][kept].astype("float64"))
            weights[row][kept] = exponentials / exponentials.sum()
    return weights


def test_masked_softmax_is_the_softmax_over_the_keys_that_are_left():
    scores, mask = (
        draw(2, 3, 5),
        np.random.default_rng(0).random((2, 3, 5)) < 0.5,
    )
    mask[1, 2] = False
    weights = to_numpy(masked_softmax(scores, mask))
    np.testing.assert_allclose(
        weights, softmax_by_hand(scores, mask), atol=1e-6
    )


def test_without_a_mask_it_is_the_softmax():
    scores = draw(2, 3, 5)
    np.testing.assert_allclose(
        to_numpy(masked_softmax(scores)),
        to_numpy(ops.softmax(scores)),
        atol=1e-6,
    )


@pytest.mark.every_backend
def test_an_empty_row_is_zeros_and_its_gradient_too():
    mask = np.array([[True, False, True], [False, False, False]])
    weights = to_numpy(masked_softmax(draw(2, 3), mask))
    assert (weights[1] == 0).all()
    assert weights[0].sum() == pytest.approx(1)
    direction = draw(2, 3, seed=1)
    (gradient,) = input_gradients(
        lambda x: ops.multiply(masked_softmax(x, mask), direction), draw(2, 3)
    )
    assert (gradient[1] == 0).all()
    assert gradient[0, 1] == 0 and (gradient[0, [0, 2]] != 0).all()
    assert np.isfinite(gradient).all()


def test_a_score_of_minus_infinity_masks_as_document_004_does():
    scores, mask = draw(3, 5), np.tri(3, 5, 1, dtype=bool)
    additive = np.where(mask, 0.0, -np.inf).astype("float32")
    np.testing.assert_array_equal(
        to_numpy(masked_softmax(scores + additive)),
        to_numpy(masked_softmax(scores, mask)),
    )
    empty = np.full((2, 3), -np.inf, "float32")
    assert (to_numpy(masked_softmax(empty)) == 0).all()


@pytest.mark.every_backend
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_masks_and_keeps_its_dtype(dtype):
    scores = ops.cast(draw(2, 3, 5) * 1e4, dtype)
    mask = np.arange(5) < np.array([[[3]], [[0]]])
    weights = masked_softmax(scores, mask)
    assert ops.dtype(weights) == dtype
    weights = to_numpy(ops.cast(weights, "float32"))
    assert np.isfinite(weights).all()
    assert (weights[0, :, 3:] == 0).all() and (weights[1] == 0).all()
    np.testing.assert_allclose(weights[0].sum(-1), 1.0, atol=4e-3)


@pytest.mark.every_backend
def test_large_scores_do_not_overflow():
    weights = to_numpy(
        masked_softmax(np.array([[1e30, 1e30, -1e30]], "float32"))
    )
    np.testing.assert_allclose(weights, [[0.5, 0.5, 0.0]])


@settings(deadline=None, max_examples=50)
@given(
    hnp.arrays(
        "float32",
        hnp.array_shapes(min_dims=2, max_dims=3, max_side=7),
        elements=st.floats(-50, 50, width=32),
    ),
    st.integers(0, 2**32 - 1),
)
def test_rows_sum_to_one_or_zero_and_permute_with_their_keys(scores, seed):
    generator = np.random.default_rng(seed)
    mask = generator.random(scores.shape) < 0.7
    weights = to_numpy(masked_softmax(scores, mask))
    np.testing.assert_allclose(weights.sum(-1), mask.any(-1), atol=1e-5)
    order = generator.permutation(scores.shape[-1])
    permuted = to_numpy(masked_softmax(scores[..., order], mask[..., order]))
    np.testing.assert_allclose(permuted, weights[..., order], atol=1e-6)


@pytest.mark.parametrize("bad", ["float32", "int32"])
def test_a_mask_that_is_not_boolean_is_refused(bad):
    with pytest.raises(ValueError, match=f"must be boolean.*{bad}"):
        masked_softmax(draw(2, 3), np.ones((2, 3), bad))


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_only_boolean_masks_are_joined(dtype):
    """Cast to bool, an additive mask would hide what it shows."""
    mask, tokens = np.zeros((2, 3, 3), dtype), np.ones((2, 3), "bool")
    x = draw(2, 3, 5)
    for join in (
        lambda: merge_masks(mask),
        lambda: merge_masks(mask, tokens),
        lambda: merge_masks(None, tokens.astype(dtype)),
        lambda: join_causal_mask(mask, np.ones((1, 3, 2)), np.ones((1, 3, 2))),
        lambda: HardAttention().probabilities(
            x, attention_mask=mask, key_mask=tokens
        ),
        lambda: segment_context(x, np.zeros((2, 3), int), mask[:, 0]),
    ):
        with pytest.raises(ValueError, match=f"must be boolean.*{dtype}"):
            join()


@pytest.mark.parametrize("shape", [(5, 3), (2, 5, 3), (2, 2, 3, 5)])
def test_a_mask_that_does_not_broadcast_names_both_shapes(shape):
    with pytest.raises(
        ValueError, match=r"Received: mask .*scores \(2, 3, 5\)"
    ):
        masked_softmax(draw(2, 3, 5), np.ones(shape, bool))


def test_padding_mask_of_lengths():
    expected = np.array([[[1, 0, 0, 0, 0]], [[1, 1, 1, 0, 0]]], bool)
    np.testing.assert_array_equal(
        to_numpy(padding_mask(np.array([1, 3]), 5)), expected
    )
    by_query = to_numpy(padding_mask(np.array([[0, 2, 5]]), 5))
    assert by_query.shape == (1, 3, 5)
    np.testing.assert_array_equal(by_query.sum(-1), [[0, 2, 5]])


@pytest.mark.parametrize(
    "lengths", [np.array(3), np.array([1.0, 2.0]), np.zeros((1, 2, 3), int)]
)
def test_padding_mask_refuses_what_is_not_lengths(lengths):
    with pytest.raises(ValueError, match="Received: shape"):
        padding_mask(lengths, 5)


def test_causal_mask_is_the_lower_triangle_with_the_diagonal():
    np.testing.assert_array_equal(
        to_numpy(causal_mask(5)), np.tri(5, dtype=bool)
    )


def test_causal_mask_aligns_the_last_query_with_the_last_key():
    np.testing.assert_array_equal(
        to_numpy(causal_mask(2, 5)), to_numpy(causal_mask(5))[-2:]
    )


@given(
    st.integers(1, 7), st.integers(1, 7), st.integers(0, 8), st.integers(0, 8)
)
@settings(deadline=None, max_examples=30)
def test_window_mask_counts_distance(num_queries, num_keys, before, after):
    mask = to_numpy(window_mask(num_queries, num_keys, before, after))
    for t, s in np.ndindex(num_queries, num_keys):
        distance = s - (t + num_keys - num_queries)
        assert mask[t, s] == (-before <= distance <= after)


def test_a_wide_window_without_a_future_is_the_causal_mask():
    np.testing.assert_array_equal(
        to_numpy(window_mask(5, 7, 7, 0)), to_numpy(causal_mask(5, 7))
    )


def test_window_mask_refuses_negative_distances():
    with pytest.raises(ValueError, match="before=-1, after=2"):
        window_mask(3, 3, -1, 2)


def test_masks_merge_with_and():
    pairs, keys = np.tri(3, dtype=bool), np.array([[True, True, False]])
    merged = to_numpy(merge_masks(pairs, keys))
    np.testing.assert_array_equal(merged[0], pairs & keys)
    assert merge_masks(None, None) is None
    np.testing.assert_array_equal(to_numpy(merge_masks(None, keys))[:, 0], keys)
