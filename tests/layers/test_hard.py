"""Hard attention, its estimator against the enumerated gradient."""

from contract import attention_inputs, check_layer, draw, to_numpy
from d2l_attention import (
    DotProductAttention,
    HardAttention,
    MovingBaseline,
    StructuredAttention,
    reinforce_loss,
)
from d2l_attention.layers.hard import (
    log_probability,
    most_likely_locations,
    sample_locations,
)
import keras
from keras import ops
import numpy as np
import pytest

SCORES = draw(1, 6) * 1.5
REWARDS = -np.abs(draw(6, seed=2)) * 2  # log p(y|z) for each place z


@pytest.mark.every_backend
def test_the_contract_holds():
    check_layer(lambda **kwargs: HardAttention(**kwargs), attention_inputs(5))


@pytest.mark.parametrize("layer", [HardAttention, StructuredAttention])
def test_dropout_drops_and_is_not_in_the_weights(layer):
    inputs = attention_inputs(5)
    query, rest = inputs.pop("query"), inputs
    rest["value"] = rest["value"][..., :1].repeat(3, axis=2)
    keras.utils.set_random_seed(0)
    layer = layer(dropout=0.5)
    asked = {"return_attention_scores": True}
    output, weights = layer(query, **rest, **asked, training=True)
    # Values of equal features show that no feature was dropped.
    one, *others = to_numpy(output).transpose(2, 0, 1)
    np.testing.assert_array_equal(others, [one, one])
    expected = to_numpy(weights) @ rest["value"]
    assert np.abs(one - expected[..., 0]).max() > 0.01
    calm, weights = layer(query, **rest, **asked, training=False)
    np.testing.assert_allclose(
        to_numpy(calm), to_numpy(weights) @ rest["value"], atol=1e-5
    )


def test_it_reads_the_value_of_the_most_likely_key():
    inputs = attention_inputs(5)
    query, rest = inputs.pop("query"), inputs
    output, weights = HardAttention()(
        query, **rest, return_attention_scores=True
    )
    _, soft = DotProductAttention()(query, **rest, return_attention_scores=True)
    best = to_numpy(soft).argmax(-1)
    np.testing.assert_array_equal(to_numpy(weights), np.eye(13)[best])
    read = np.take_along_axis(rest["value"], best[..., None], 1)
    np.testing.assert_array_equal(to_numpy(output), read)


def test_the_best_key_has_the_highest_score_of_any_sign():
    """Among those that may be chosen; a row without one stays empty."""
    scores = np.stack([draw(5, 7) - 9, draw(5, 7), draw(5, 7) + 9])
    expected = np.eye(7)[scores.argmax(-1)]
    found = most_likely_locations(scores)
    np.testing.assert_array_equal(to_numpy(found), expected)
    mask = np.random.default_rng(0).random(scores.shape) < 0.5
    mask[:, 2] = False
    chosen = np.where(mask, scores, -np.inf).argmax(-1)
    expected = np.eye(7)[chosen] * mask.any(-1, keepdims=True)
    found = most_likely_locations(scores, mask)
    np.testing.assert_array_equal(to_numpy(found), expected)


@pytest.mark.every_backend
def test_in_training_it_reads_what_it_drew_and_masked_keys_never():
    inputs = attention_inputs(5)
    query, rest = inputs.pop("query"), inputs
    layer = HardAttention(seed=1)
    mask = np.arange(13) % 3 > 0
    drawn = []
    for _ in range(40):
        output, weights = layer(
            query,
            **rest,
            attention_mask=mask[None, None],
            return_attention_scores=True,
            training=True,
        )
        weights = to_numpy(weights)
        np.testing.assert_array_equal(weights.sum(-1), 1)
        np.testing.assert_allclose(
            to_numpy(output), weights @ rest["value"], atol=1e-6
        )
        drawn.append(weights)
    assert (np.sum(drawn, 0)[..., ~mask] == 0).all()
    assert (np.max(drawn, 0).sum(-1) > 1).any(), "the draws differ"


def test_probabilities_are_of_the_keys_that_are_there():
    layer, query, key = HardAttention(), draw(2, 3, 4), draw(2, 5, 4)
    there = np.arange(5) < [[3], [5]]
    mask = np.ones((2, 3, 5), "bool")
    mask[:, 1, 2] = False
    found = layer.probabilities(
        query, key=key, attention_mask=mask, key_mask=there
    )
    whole = to_numpy(layer.probabilities(query, key=key))
    seen = whole * (mask & there[:, None])
    expected = seen / seen.sum(-1, keepdims=True)
    np.testing.assert_allclose(to_numpy(found), expected, atol=1e-6)


def test_draws_follow_their_probabilities():
    p = np.array([0.5, 0.2, 0.0, 0.3])
    draws = to_numpy(sample_locations(np.tile(p, (20_000, 1)), seed=0))
    found = draws.mean(0)
    assert found[2] == 0
    error = np.sqrt(p * (1 - p) / 20_000)
    assert (np.abs(found - p) <= 4 * error).all()
    nothing = sample_locations(np.zeros((3, 4)), seed=0)
    assert (to_numpy(nothing) == 0).all()


def test_log_probability_is_that_of_the_chosen_and_0_where_nothing_is():
    p = np.array([[0.5, 0.25, 0.25], [0.0, 0.0, 0.0]], "float32")
    chosen = np.array([[0, 1, 0], [0, 0, 0]], "float32")
    np.testing.assert_allclose(
        to_numpy(log_probability(p, chosen)), [np.log(0.25), 0], atol=1e-6
    )


def enumerated_gradient():
    """Of −Σ_z p(z) log p(y|z) with respect to the scores, by algebra."""
    p = np.exp(SCORES[0]) / np.exp(SCORES[0]).sum()
    return -p * (REWARDS - p @ REWARDS)


def sampled_gradients(baseline, count=4000):
    """The estimator's gradients for many single draws."""
    if keras.backend.backend() != "tensorflow":
        pytest.skip("uses GradientTape")
    import tensorflow as tf

    scores = tf.constant(np.tile(SCORES, (count, 1)))
    with tf.GradientTape() as tape:
        tape.watch(scores)
        p = ops.softmax(scores)
        chosen = sample_locations(p, seed=7)
        reward = ops.sum(chosen * REWARDS, axis=-1)
        # times count: the loss is a mean, the rows are draws of their own
        loss = count * reinforce_loss(
            reward, log_probability(p, chosen), baseline
        )
    return tape.gradient(loss, scores).numpy()


@pytest.mark.parametrize("baseline", [0.0, "mean"])
def test_the_estimator_agrees_with_the_enumerated_gradient(baseline):
    p = np.exp(SCORES[0]) / np.exp(SCORES[0]).sum()
    baseline = p @ REWARDS if baseline == "mean" else baseline
    draws = sampled_gradients(np.float32(baseline))
    error = draws.std(0, ddof=1) / np.sqrt(len(draws))
    z = (draws.mean(0) - enumerated_gradient()) / error
    assert np.abs(z).max() < 4, z


def test_a_baseline_lowers_the_variance():
    p = np.exp(SCORES[0]) / np.exp(SCORES[0]).sum()
    without = sampled_gradients(np.float32(0.0)).var(0).sum()
    with_it = sampled_gradients(np.float32(p @ REWARDS)).var(0).sum()
    assert with_it < 0.7 * without


def test_the_advantage_has_no_gradient_and_entropy_has():
    if keras.backend.backend() != "tensorflow":
        pytest.skip("uses GradientTape")
    import tensorflow as tf

    reward, log_p, entropy = (tf.Variable([x]) for x in (2.0, -0.5, 0.3))
    with tf.GradientTape() as tape:
        loss = reinforce_loss(reward, log_p, 0.5, entropy, weight=0.1)
    found = [float(g[0]) for g in tape.gradient(loss, [reward, log_p, entropy])]
    np.testing.assert_allclose(found, [-1.0, -1.5, -0.1])
    assert float(loss) == pytest.approx(-(2.0 + 1.5 * -0.5 + 0.03))


def test_the_baseline_is_that_of_the_batches_before():
    baseline = MovingBaseline(decay=0.9)
    assert float(baseline(np.array([4.0, 2.0], "float32"), training=True)) == 0
    second = baseline(np.array([1.0], "float32"), training=True)
    assert float(second) == pytest.approx(0.3)
    third = baseline(np.array([9.0], "float32"))
    assert float(third) == pytest.approx(0.9 * 0.3 + 0.1)
    assert float(baseline(np.array([9.0], "float32"))) == float(third)
    with pytest.raises(ValueError, match="decay.*1.0"):
        MovingBaseline(decay=1.0)
