"""Hard attention: read one place, and learn where to look by reward.

A sampled place has no gradient. The score-function estimator (REINFORCE)
gives one for the distribution that it was drawn from.
"""

from d2l_attention._checks import check_rate
from d2l_attention.masking import masked_softmax, merge_masks
from d2l_attention.scoring import DotProductAttention
import keras
from keras import ops

_register = keras.saving.register_keras_serializable("d2l_attention")


def sample_locations(probabilities, seed=None):
    """One key for each query, drawn from its probabilities.

        z = argmax_s (log p_s + g_s),  g_s = −log(−log u_s)

    Source: Gumbel (1954), the maximum of independent Gumbel variables.

    Args:
        probabilities: Float tensor `(…, S)`, rows summing to 1, or to 0
            where there is nothing to choose from.
        seed: Int or `keras.random.SeedGenerator`.

    Returns:
        Tensor `(…, S)`, 1 at the drawn key and 0 elsewhere; rows of zeros
        stay zeros.
    """
    shape = ops.shape(probabilities)
    uniform = keras.random.uniform(shape, 1e-7, 1.0, "float32", seed)
    p = ops.cast(probabilities, "float32")
    # log p + g, but never where p is 0.
    keys = ops.log(ops.maximum(p, 1e-37)) - ops.log(-ops.log(uniform))
    return most_likely_locations(ops.where(p > 0, keys, -1e9), p > 0)


def most_likely_locations(scores, mask=None):
    """The best key for each query.

    Args:
        scores: Float tensor `(…, S)`.
        mask: Bool tensor `(…, S)`, True = may be chosen; None takes scores
            for probabilities, where 0 may not.

    Returns:
        Float tensor `(…, S)`: 1 at the best key and 0 elsewhere; rows of
        zeros where it may not be chosen.
    """
    chosen = ops.one_hot(ops.argmax(scores, -1), ops.shape(scores)[-1])
    allowed = scores > 0 if mask is None else mask
    return chosen * ops.cast(allowed, chosen.dtype)


def log_probability(probabilities, chosen):
    """log p(z) of the places `chosen`, `(…, S)` one-hot, to `(…)`.

    0 in rows that have chosen nothing.
    """
    p = ops.sum(probabilities * ops.cast(chosen, probabilities.dtype), -1)
    return ops.log(ops.where(p > 0, p, ops.ones_like(p)))


def reinforce_loss(
    log_likelihood, log_probability, baseline=0.0, entropy=0.0, *, weight=0.0
):
    """What to minimise so that places of high reward become likely.

        −mean[log p(y|z) + (log p(y|z) − b)⁺ log p(z) + λ H]

    where ( )⁺ marks what has no gradient. Its gradient is an unbiased
    estimate of that of −E_z log p(y|z), whatever b, as long as b does not
    depend on z; a b near the mean reward makes it less noisy.

    Source: Williams (1992), section 4; Xu et al. (2015), arXiv:1502.03044,
    section 4.1, with λ_r = 1.

    Args:
        log_likelihood: Float tensor `(B,)`, log p(y|z), the reward; or
            `(B, T)`, if every query has a reward of its own.
        log_probability: The same of log p(z); with one reward for all
            queries, their sum.
        baseline: Float or tensor, b.
        entropy: Float tensor, H of the distribution of z.
        weight: Float, λ.

    Returns:
        Scalar tensor.
    """
    advantage = ops.stop_gradient(log_likelihood - baseline)
    gain = log_likelihood + advantage * log_probability + weight * entropy
    return -ops.mean(gain)


@_register
class MovingBaseline(keras.Layer):
    """The mean reward of the batches before this one.

        b_k = decay · b_{k−1} + (1 − decay) · mean reward

    Source: Xu et al. (2015), arXiv:1502.03044, section 4.1.

    Args:
        decay: Float in [0, 1).

    Call arguments:
        reward: Float tensor `(B,)`.
        training: Whether this batch counts from now on.

    Returns:
        Scalar tensor: b from before this batch, so that it does not depend
        on the samples that it judges.

    Raises:
        ValueError: If `decay` is outside [0, 1).
    """

    def __init__(self, decay=0.9, **kwargs):
        super().__init__(**kwargs)
        check_rate("decay", decay)
        self.decay = decay

    def build(self, reward_shape):
        self.mean = self.add_weight((), "zeros", trainable=False, name="mean")

    def call(self, reward, training=None):
        before = self.mean + 0.0
        if training:
            mean = ops.mean(ops.stop_gradient(reward))
            self.mean.assign(self.decay * before + (1 - self.decay) * mean)
        return before

    def get_config(self):
        return {**super().get_config(), "decay": self.decay}


@_register
class HardAttention(DotProductAttention):
    """Attention that reads one value a query instead of averaging them.

        p = softmax(scale · query keyᵀ),  z ~ p,  output = value_z

    In training z is drawn from p, otherwise it is the most likely key. The
    output has no gradient towards queries and keys: add `reinforce_loss` of
    `log_probability(layer.probabilities(…), weights)`.

    Source: Xu et al. (2015), arXiv:1502.03044, section 4.1; document 000,
    section 2.2.1.

    Args:
        scale: Float, factor of the scores; None = 1/√K.
        seed: Int, of the draws.

    Call arguments, returns and errors: see `AttentionLayer`. The weights are
    those that made the output: 1 at the key that was read, 0 elsewhere.
    """

    def __init__(self, scale=None, seed=None, **kwargs):
        super().__init__(scale=scale, dropout=0.0, **kwargs)
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def probabilities(
        self, query, *, key=None, attention_mask=None, key_mask=None
    ):
        """p `(B, T, S)`, with gradients."""
        key = query if key is None else key
        mask = merge_masks(attention_mask, key_mask)
        return masked_softmax(self.score(query, key), mask)

    def attend(self, query, key, value, mask=None, training=None):
        p = masked_softmax(self.score(query, key), mask)
        if training:
            weights = sample_locations(p, self.seed_generator)
        else:
            weights = most_likely_locations(p)
        weights = ops.cast(weights, p.dtype)
        places = ops.argmax(weights, axis=-1)[..., None]  # (B, T, 1)
        read = ops.take_along_axis(value, places, axis=1)
        any_place = ops.sum(weights, axis=-1, keepdims=True)
        return read * ops.cast(any_place, read.dtype), weights

    def get_config(self):
        config = {**super().get_config(), "seed": self.seed}
        del config["dropout"]
        return config
