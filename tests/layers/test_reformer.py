"""Tokens that hash alike: one softmax over the union of all rounds."""

from contract import draw, to_numpy
from d2l_attention import ReformerAttention, causal_mask, reformer_attention
from d2l_attention.layers.reformer import lsh_buckets, reformer_mask
import numpy as np
import pytest

T, H = 23, 3
MASK = np.arange(T) < np.array([[12], [T]])
MASK[0, :2] = False


def inputs():
    return draw(2, T, H, 4), draw(2, T, H, 5)


def dense(query, value, mask):
    """Shared keys of length 1, a penalty for oneself, a softmax by NumPy."""
    query = np.asarray(query, "float64")
    key = query / np.linalg.norm(query, axis=-1, keepdims=True)
    scores = np.einsum("bthk,bshk->bhts", query, key)
    scores = np.where(mask, scores - 1e5 * np.eye(query.shape[1]), -np.inf)
    highest = scores.max(-1, keepdims=True)
    highest[np.isinf(highest)] = 0
    weights = np.exp(scores - highest)
    total = weights.sum(-1, keepdims=True)
    weights = weights / np.where(total == 0, 1, total)
    return np.einsum("bhts,bshv->bthv", weights, value)


def some_buckets(num_rounds, num_buckets=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(num_buckets, size=(2, T, H, num_rounds)).astype("int32")


@pytest.mark.parametrize("num_rounds", [1, 3])
@pytest.mark.parametrize("causal", [False, True])
def test_one_bucket_in_one_chunk_is_dense_attention(num_rounds, causal):
    """A chunk before the first, or a circle of one, would count keys twice."""
    query, value = inputs()
    buckets = np.zeros((2, T, H, num_rounds), "int32")
    found = reformer_attention(
        query, value, buckets, T, key_mask=MASK, use_causal_mask=causal
    )
    mask = np.broadcast_to(MASK[:, None, None], (2, 1, T, T))
    if causal:
        mask = mask & to_numpy(causal_mask(T))
    found, expected = to_numpy(found), dense(query, value, mask)
    np.testing.assert_allclose(found[MASK], expected[MASK], atol=2e-6)
    assert (found[~MASK] == 0).all()


@pytest.mark.parametrize("num_rounds", [1, 2, 4])
@pytest.mark.parametrize("chunk_size", [1, 4, 5, 50])
@pytest.mark.parametrize("causal", [False, True])
def test_rounds_are_one_softmax_over_their_union(
    num_rounds, chunk_size, causal
):
    """Which needs −log N_ij: pairs that meet twice would count twice."""
    query, value = inputs()
    buckets = some_buckets(num_rounds)
    found = reformer_attention(
        query, value, buckets, chunk_size, key_mask=MASK, use_causal_mask=causal
    )
    mask = to_numpy(reformer_mask(buckets, chunk_size, MASK, causal))
    expected = dense(query, value, mask)
    np.testing.assert_allclose(to_numpy(found), expected, atol=2e-6)


def test_the_same_round_twice_is_once():
    query, value = inputs()
    buckets = some_buckets(1)
    one, two = (
        reformer_attention(query, value, np.tile(buckets, (1, 1, 1, n)), 4)
        for n in (1, 2)
    )
    np.testing.assert_allclose(to_numpy(one), to_numpy(two), atol=1e-6)


def test_the_mask_by_hand():
    """Sorted by bucket: 1 3 4 | 0 2 5, in chunks of two: 1 3 | 4 0 | 2 5."""
    buckets = np.array([1, 0, 1, 0, 0, 1]).reshape(1, 6, 1, 1)
    expected = np.zeros((6, 6), int)
    for token, seen in {
        1: [1, 3],
        3: [1, 3],
        4: [1, 3, 4],
        0: [0],
        2: [0, 2, 5],
        5: [0, 2, 5],
    }.items():
        expected[token, seen] = 1
    found = to_numpy(reformer_mask(buckets, 2))[0, 0]
    np.testing.assert_array_equal(found, expected)
    causal = to_numpy(reformer_mask(buckets, 2, use_causal_mask=True))[0, 0]
    np.testing.assert_array_equal(causal, np.tril(expected))


def test_a_lonely_token_attends_to_itself():
    query, value = inputs()
    buckets = np.broadcast_to(np.arange(T)[None, :, None, None], (2, T, H, 1))
    found = reformer_attention(query, value, buckets.astype("int32"), 4)
    np.testing.assert_allclose(to_numpy(found), value, atol=1e-6)


def test_padding_moves_nothing_and_gets_nothing_alone():
    query, value = inputs()
    buckets = some_buckets(2)
    before = to_numpy(
        reformer_attention(query, value, buckets, 4, key_mask=MASK)
    )
    value[~MASK] = 99
    buckets[~MASK] = 3  # would fill up chunks
    after = to_numpy(
        reformer_attention(query, value, buckets, 4, key_mask=MASK)
    )
    np.testing.assert_array_equal(before[MASK], after[MASK])
    nothing = reformer_attention(
        query, value, buckets, 4, key_mask=np.zeros((2, T), bool)
    )
    assert (to_numpy(nothing) == 0).all()


def test_buckets():
    """Scale does not matter, opposites never meet, duplicates always do."""
    x, rotations = draw(500, 8), draw(8, 3, 5)
    buckets = to_numpy(lsh_buckets(x, rotations))
    assert buckets.shape == (500, 3)
    assert set(buckets.ravel()) == set(range(10))
    projected = np.einsum("tk,knc->tnc", x, rotations)
    both = np.concatenate([projected, -projected], -1)
    np.testing.assert_array_equal(buckets, both.argmax(-1))
    np.testing.assert_array_equal(
        buckets, to_numpy(lsh_buckets(7 * x, rotations))
    )
    opposite = to_numpy(lsh_buckets(-x, rotations))
    np.testing.assert_array_equal(opposite, (buckets + 5) % 10)


def test_near_vectors_meet_more_often_and_more_with_rounds():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 16)).astype("float32")
    rotations = rng.normal(size=(16, 8, 4)).astype("float32")
    met = []
    for noise in (0.1, 0.5, 2.0):
        near = x + noise * rng.normal(size=x.shape).astype("float32")
        same = to_numpy(lsh_buckets(x, rotations)) == to_numpy(
            lsh_buckets(near, rotations)
        )
        met.append([same[:, :n].any(1).mean() for n in (1, 2, 4, 8)])
    met = np.array(met)
    assert (np.diff(met, axis=0) < 0).all()
    assert (np.diff(met, axis=1) >= 0).all()
    assert met[0, 0] > 0.8
    assert met[2, 0] < 0.5


@pytest.mark.every_backend
def test_the_layer_is_the_equation():
    x = draw(2, T, 7)
    layer = ReformerAttention(H, 4, chunk_size=5, num_buckets=4, num_rounds=2)
    found = to_numpy(layer(x, key_mask=MASK))
    query = to_numpy(layer.query_layer(x)).reshape(2, T, H, 4)
    value = to_numpy(layer.value_layer(x)).reshape(2, T, H, 4)
    buckets = to_numpy(lsh_buckets(query, layer.rotations))
    assert len(np.unique(buckets)) == 4
    mask = to_numpy(reformer_mask(buckets, 5, MASK))
    heads = dense(query, value, mask).reshape(2, T, H * 4)
    expected = heads @ to_numpy(layer.output_layer.kernel)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    names = {w.path.split("/", 1)[1] for w in layer.trainable_weights}
    assert names == {"W_q/kernel", "W_v/kernel", "W_o/kernel"}


def test_one_bucket_needs_no_rotations():
    x = draw(2, T, 7)
    layer = ReformerAttention(H, 4, chunk_size=T, num_buckets=1, num_rounds=2)
    layer.build(x.shape)
    query = to_numpy(layer.query_layer(x)).reshape(2, T, H, 4)
    value = to_numpy(layer.value_layer(x)).reshape(2, T, H, 4)
    heads = dense(query, value, np.ones((T, T), bool)).reshape(2, T, H * 4)
    expected = heads @ to_numpy(layer.output_layer.kernel)
    np.testing.assert_allclose(to_numpy(layer(x)), expected, atol=1e-5)


def test_redraw_and_seeds():
    one, two = (
        ReformerAttention(H, 4, 5, num_buckets=4, seed=3) for _ in range(2)
    )
    for layer in (one, two):
        layer.build((None, T, 7))
    first = to_numpy(one.rotations)
    np.testing.assert_array_equal(first, to_numpy(two.rotations))
    one.redraw(4)
    assert np.abs(first - to_numpy(one.rotations)).max() > 0.1


@pytest.mark.parametrize(
    "wrong", [{"chunk_size": 0}, {"num_buckets": 3}, {"num_rounds": -1}]
)
def test_sizes_are_checked(wrong):
    ((name, value),) = wrong.items()
    with pytest.raises(ValueError, match=f"{name}={value}"):
        ReformerAttention(H, 4, **{"chunk_size": 5, "num_buckets": 4, **wrong})
