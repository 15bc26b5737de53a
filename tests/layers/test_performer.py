"""Random features: unbiased, of the predicted variance, and causal."""

from contract import dense_attention, draw, to_numpy
from d2l_attention import (
    MultiHeadAttention,
    PerformerAttention,
    causal_mask,
    multi_head_attention,
    performer_attention,
)
from d2l_attention.layers.performer import (
    log_features,
    orthogonal_directions,
    performer_weights,
)
import keras
from keras import ops
import numpy as np
import pytest

T, H = 11, 3
MASK = np.arange(T) < np.array([[6], [11]])
MASK[0, :3] = False  # so the first causal queries have nothing


def inputs(scale=1.0):
    query, key = draw(2, T, H, 4), draw(2, T, H, 4, seed=1)
    return scale * query, scale * key, draw(2, T, H, 5)


def estimates(query, key, draws, num_features=4, signs=True):
    """exp(q·k), estimated from directions drawn so many times."""
    size = len(query)
    directions = to_numpy(
        orthogonal_directions(draws * num_features, size, seed=0)
    )
    assert num_features == size
    if not signs:  # the same draw, without the correction
        rng = np.random.default_rng(0)
        q, r = np.linalg.qr(rng.normal(size=(draws, size, size)))
        lengths = np.linalg.norm(rng.normal(size=(draws, size, size)), axis=-1)
        directions = (q * lengths[..., None]).reshape(-1, size)
        directions = directions.astype("float32")
    # log_features divides by K^¼ and by √M: undone here.
    logs = [
        to_numpy(log_features((x * size**0.25).astype("float32"), directions))
        for x in (query, key)
    ]
    products = np.exp(sum(logs) + np.log(len(directions)))
    return products.reshape(draws, num_features).mean(1)


E0 = np.eye(4)[0] / 2
AGAINST = np.array([-0.3, -0.4, 0.0, 0.0])  # −E0 has no variance at all


@pytest.mark.parametrize("query, key", [(E0, E0), (E0, AGAINST)])
def test_unbiased_in_four_dimensions(query, key):
    """z-test; a mean 1 % off would be seen."""
    found = estimates(query, key, draws=60_000)
    error = found.std() / len(found) ** 0.5
    assert abs(found.mean() - np.exp(query @ key)) < 4 * error
    assert error < 0.005


def test_directions_without_their_signs_are_biased():
    """What is shipped elsewhere fails the test above by 20 standard errors."""
    found = estimates(E0, E0, draws=60_000, signs=False)
    error = found.std() / len(found) ** 0.5
    assert np.exp(E0 @ E0) - found.mean() > 20 * error


def test_directions_are_orthogonal_in_blocks_and_as_long_as_normal_ones():
    directions = to_numpy(orthogonal_directions(4000, 8, seed=3))
    lengths = np.linalg.norm(directions, axis=1)
    unit = (directions / lengths[:, None]).reshape(-1, 8, 8)
    products = unit @ unit.transpose(0, 2, 1)
    np.testing.assert_allclose(
        products, np.tile(np.eye(8), (500, 1, 1)), atol=1e-5
    )
    assert abs((lengths**2).mean() - 8) < 4 * 4 / 4000**0.5  # variance 2K
    assert lengths.std() > 0.6  # not all √8
    # A last block may be cut.
    assert orthogonal_directions(5, 3, seed=0).shape == (5, 3)


def test_variance_of_independent_directions():
    """(exp ‖q + k‖² − 1) / M, relative to exp(q·k)²."""
    rng = np.random.default_rng(0)
    q, k = 0.4 * np.eye(16)[:2]
    k = (k + q) / 2
    m, draws = 8, 20_000
    directions = rng.normal(size=(draws * m, 16)).astype("float32")
    logs = [
        to_numpy(log_features((2 * x).astype("float32"), directions))
        for x in (q, k)
    ]
    products = np.exp(sum(logs) + np.log(len(directions)))
    found = products.reshape(draws, m).mean(1)
    measured = ((found / np.exp(q @ k) - 1) ** 2).mean()
    predicted = (np.exp(((q + k) ** 2).sum()) - 1) / m
    assert 0.9 < measured / predicted < 1.1


def test_converges_at_the_rate_of_a_mean():
    """Root mean square error over features: slope −1/2 in logarithms."""
    query, key, value = inputs(0.5)
    exact = dense_attention(query, key, value, True)
    numbers = [64, 256, 1024, 4096]
    errors = [
        np.sqrt(
            np.mean(
                [
                    (
                        to_numpy(
                            performer_attention(
                                query,
                                key,
                                value,
                                orthogonal_directions(m, 4, seed=seed),
                            )
                        )
                        - exact
                    )
                    ** 2
                    for seed in range(8)
                ]
            )
        )
        for m in numbers
    ]
    slope = np.polyfit(np.log(numbers), np.log(errors), 1)[0]
    assert -0.6 < slope < -0.4
    assert errors[-1] < 0.02


@pytest.mark.parametrize(
    "chunk_size", [1, pytest.param(4, marks=pytest.mark.every_backend), 128]
)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("scale", [1.0, 12.0])
def test_equals_the_weights_it_never_forms(chunk_size, causal, masked, scale):
    """At a scale of 12, exponents reach 700: without maxima all is 0 or inf."""
    query, key, value = inputs(scale)
    directions = orthogonal_directions(6, 4, seed=0)
    key_mask = MASK if masked else None
    options = {"key_mask": key_mask, "use_causal_mask": causal}
    found = to_numpy(
        performer_attention(
            query, key, value, directions, chunk_size=chunk_size, **options
        )
    )
    weights = to_numpy(performer_weights(query, key, directions, **options))
    seen = np.ones((2, T, T), bool) & (MASK[:, None] if masked else True)
    if causal:
        seen = seen & to_numpy(causal_mask(T))
    rows = np.broadcast_to(seen.any(-1)[:, None], weights.shape[:3])
    np.testing.assert_allclose(weights.sum(-1), rows, atol=1e-5)
    assert (weights[~np.broadcast_to(seen[:, None], weights.shape)] == 0).all()
    expected = np.einsum("bhts,bshv->bthv", weights, value)
    if scale == 1.0:
        np.testing.assert_allclose(found, expected, atol=2e-5)
    else:  # a query's features may all be far from every key's
        assert np.isfinite(found).all()


def test_weights_are_those_of_the_features():
    query, key, _ = inputs()
    directions = to_numpy(orthogonal_directions(6, 4, seed=0))
    found = to_numpy(performer_weights(query, key, directions))
    features = []
    for x in (query / 2**0.5, key / 2**0.5):
        half = (x**2).sum(-1, keepdims=True) / 2
        features.append(np.exp(x @ directions.T - half))
    products = np.einsum("bthm,bshm->bhts", *features)
    expected = products / products.sum(-1, keepdims=True)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_one_maximum_for_all_keys():
    """One for each key would make long and short keys weigh the same."""
    query, key, value = inputs(0.5)
    key[:, 3] *= 0.01
    directions = orthogonal_directions(4096, 4, seed=0)
    found = to_numpy(performer_weights(query, key, directions))[..., 3]
    _, weights = multi_head_attention(query, key, value)
    exact = to_numpy(weights)[..., 3]
    assert np.abs(found / exact - 1).mean() < 0.1
    output = performer_attention(query, key, value, directions)
    expected = np.einsum(
        "bhts,bshv->bthv",
        to_numpy(performer_weights(query, key, directions)),
        value,
    )
    np.testing.assert_allclose(to_numpy(output), expected, atol=1e-5)


@pytest.mark.every_backend
def test_later_tokens_move_no_bit_of_earlier_outputs():
    query, key, value = inputs()
    directions = orthogonal_directions(6, 4, seed=0)
    for chunk_size in (2, 4, 128):
        before, after = (
            to_numpy(
                performer_attention(
                    query,
                    k,
                    v,
                    directions,
                    use_causal_mask=True,
                    chunk_size=chunk_size,
                )
            )
            for k, v in (
                (key, value),
                (
                    np.concatenate([key[:, :5], 9 * key[:, 5:]], 1),
                    np.concatenate([value[:, :5], -value[:, 5:]], 1),
                ),
            )
        )
        np.testing.assert_array_equal(before[:, :5], after[:, :5])
        assert np.abs(before[:, 5:] - after[:, 5:]).max() > 0.1


def test_the_layer_nears_multi_head_attention():
    x = 0.3 * draw(2, T, 7)
    layer = PerformerAttention(H, 4, 4096, seed=1)
    plain = MultiHeadAttention(H, 4)
    for one in (layer, plain):
        one.build(x.shape)
    layer.set_weights([to_numpy(layer.directions), *plain.get_weights()])
    exact = to_numpy(plain(x, key_mask=MASK))
    found = to_numpy(layer(x, key_mask=MASK))
    assert np.abs(found - exact).max() < 0.1 * np.abs(exact).max()


@pytest.mark.every_backend
def test_redraw_and_seeds():
    one, two = (PerformerAttention(H, 4, 8, seed=5) for _ in range(2))
    for layer in (one, two):
        layer.build((None, T, 7))
    first = to_numpy(one.directions)
    np.testing.assert_array_equal(first, to_numpy(two.directions))
    for seed in (6, None, None):  # None: other ones each time
        before = to_numpy(one.directions)
        one.redraw(seed)
        assert np.abs(before - to_numpy(one.directions)).max() > 0.1
    assert not any("directions" in w.path for w in one.trainable_weights)


def test_refusals():
    layer = PerformerAttention(H, 4, 8)
    with pytest.raises(ValueError, match=r"causal.*\(5, 5\)"):
        layer(draw(2, 5, 7), attention_mask=causal_mask(5))
    with pytest.raises(ValueError, match="5 queries and 6 keys"):
        layer(draw(2, 5, 7), key=draw(2, 6, 7), use_causal_mask=True)
    with pytest.raises(ValueError, match="num_features=0"):
        PerformerAttention(H, 4, 0)


def test_half_precision_is_computed_in_single():
    query, key, value = (x.astype("float16") for x in inputs())
    directions = orthogonal_directions(64, 4, seed=0)
    half = performer_attention(
        query, key, value, directions, use_causal_mask=True
    )
    assert keras.backend.standardize_dtype(half.dtype) == "float16"
    full = performer_attention(
        *(x.astype("float32") for x in (query, key, value)),
        directions,
        use_causal_mask=True,
    )
    np.testing.assert_allclose(to_numpy(half), to_numpy(full), atol=2e-3)
    assert to_numpy(ops.isfinite(half)).all()
