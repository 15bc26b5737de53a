"""Hard attention: read one place, and learn where to look by reward.

A sampled place has no gradient; REINFORCE gives its distribution one.
"""

from d2l_attention._checks import check_rate
from d2l_attention._config import Configurable
from d2l_attention.layers.base import drop
from d2l_attention.layers.compiled_loops import place_of_highest
from d2l_attention.layers.masking import (
    join_causal_mask,
    masked_softmax,
    merge_masks,
)
from d2l_attention.layers.scoring import DotProductAttention
import keras
from keras import ops


def sample_locations(probabilities, seed=None):
    """One key for each query, drawn from its probabilities.

        z = argmax_s (log p_s + g_s),  g_s = −log(−log u_s)

    Source: Gumbel (1954), the maximum of independent Gumbel variables.

    Args:
        probabilities: Float tensor `(…, S)`. Rows sum to 1, or to 0 where no
            key may be chosen.
        seed: Int or `keras.random.SeedGenerator`.

    Returns:
        Float tensor `(…, S)`, 1 at the drawn key and 0 elsewhere; rows of
        zeros stay zeros.

    Example:
        >>> import numpy as np
        >>> from d2l_attention.layers.hard import sample_locations
        >>> p = np.array([[0.0, 1.0], [0.0, 0.0]])
        >>> np.array(sample_locations(p, seed=0)).tolist()
        [[0.0, 1.0], [0.0, 0.0]]
    """
    shape = ops.shape(probabilities)
    uniform = keras.random.uniform(shape, 1e-7, 1.0, "float32", seed)
    p = ops.cast(probabilities, "float32")
    gumbel = -ops.log(-ops.log(uniform))
    scores = ops.log(ops.maximum(p, 1e-37)) + gumbel
    return most_likely_locations(scores, p > 0)


def most_likely_locations(scores, mask=None):
    """The best key for each query.

    Args:
        scores: Float tensor `(…, S)`.
        mask: Bool tensor `(…, S)`, True = may be chosen; None = every key.
            For probabilities, `p > 0`.

    Returns:
        Float tensor `(…, S)`: 1 at the best key that may be chosen and 0
        elsewhere; a row of zeros where none may be.

    Example:
        >>> import numpy as np
        >>> from d2l_attention.layers.hard import most_likely_locations
        >>> scores = np.array([[-3.0, -1.0, -2.0]])
        >>> np.array(most_likely_locations(scores)).tolist()
        [[0.0, 1.0, 0.0]]
    """
    if mask is None:
        mask = ops.ones_like(scores, "bool")
    scores = ops.where(mask, scores, -float("inf"))
    chosen = ops.one_hot(place_of_highest(scores), ops.shape(scores)[-1])
    return chosen * ops.cast(mask, chosen.dtype)


def log_probability(probabilities, chosen):
    """log p(z), the log-probability of the chosen places z.

    Args:
        probabilities: Float tensor `(…, S)`.
        chosen: Tensor `(…, S)`, as `sample_locations` returns it.

    Returns:
        Float tensor `(…)`; 0 for rows in which no key is chosen.

    Example:
        >>> import numpy as np
        >>> from d2l_attention.layers.hard import log_probability
        >>> p = np.array([[0.25, 0.75]], "float32")
        >>> chosen = np.array([[1, 0]])
        >>> np.exp(np.array(log_probability(p, chosen))).tolist()
        [0.25]
    """
    chosen = ops.cast(chosen, probabilities.dtype)
    p = ops.sum(ops.multiply(probabilities, chosen), -1)
    return ops.log(ops.where(p > 0, p, ops.ones_like(p)))


def reinforce_loss(
    log_likelihood, log_p, baseline=0.0, entropy=0.0, *, weight=0.0
):
    """A loss whose minimum makes places of high reward likely.

        −mean[log p(y|z) + stop(log p(y|z) − b) log p(z) + λ H]

    The factor in stop( ) has no gradient. The gradient of the loss is an
    unbiased estimate of the gradient of −E_z log p(y|z) for every b that does
    not depend on z; a b near the mean reward makes the estimate less noisy.

    Source: Williams (1992), section 4; Xu et al. (2015), arXiv:1502.03044,
    section 4.1, with λ_r = 1.

    Args:
        log_likelihood: Float tensor `(B,)`, the reward log p(y|z); or
            `(B, T)`, if every query has a reward of its own.
        log_p: Float tensor of the same shape, log p(z); with one reward
            for all queries, the sum over the queries.
        baseline: Float or tensor, b.
        entropy: Float tensor, H of the distribution of z.
        weight: Float, λ.

    Returns:
        Scalar tensor.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import reinforce_loss
        >>> reward, log_p = np.array([-2.0]), np.array([-1.0])
        >>> float(reinforce_loss(reward, log_p, baseline=-3.0))  # −(−2 − 1)
        3.0
    """
    log_likelihood = ops.convert_to_tensor(log_likelihood)
    advantage = ops.stop_gradient(ops.subtract(log_likelihood, baseline))
    gain = ops.add(log_likelihood, ops.multiply(advantage, log_p))
    return -ops.mean(ops.add(gain, ops.multiply(entropy, weight)))


@keras.saving.register_keras_serializable("d2l_attention")
class MovingBaseline(Configurable, keras.Layer):
    """A moving mean of the rewards of all earlier batches.

        b_k = decay · b_{k−1} + (1 − decay) · mean reward

    Source: Xu et al. (2015), arXiv:1502.03044, section 4.1.

    Args:
        decay: Float in [0, 1), the share of the old mean that stays.

    Call arguments:
        reward: Float tensor `(B,)`.
        training: Whether this batch enters the mean for later batches.

    Returns:
        Scalar tensor, b from before this batch, which does not depend on the
        samples of this batch.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import MovingBaseline
        >>> baseline, reward = MovingBaseline(decay=0.5), np.array([2.0, 4.0])
        >>> float(baseline(reward, training=True))  # the first batch
        0.0
        >>> float(baseline(reward))  # half of the mean, 3
        1.5
    """

    def __init__(self, *, decay=0.9, **kwargs):
        super().__init__(**kwargs)
        self.decay = check_rate("decay", decay)

    def build(self, reward_shape):
        self.mean = self.add_weight((), "zeros", trainable=False, name="mean")

    def call(self, reward, training=None):
        before = self.mean + 0.0
        if training:
            mean = ops.mean(ops.stop_gradient(reward))
            self.mean.assign(self.decay * before + (1 - self.decay) * mean)
        return before

    def compute_output_shape(self, reward_shape):
        return ()


@keras.saving.register_keras_serializable("d2l_attention")
class HardAttention(DotProductAttention):
    """Attention that reads one value for each query, instead of averaging.

        p = softmax(scale · query keyᵀ),  z ~ p,  output = value_z

    In training z is drawn from p, otherwise z is the most likely key. The
    output has no gradient towards queries and keys. To train them, minimise
    `reinforce_loss`, with `log_probability(layer.probabilities(…), weights)`.

    Source: Xu et al. (2015), arXiv:1502.03044, section 4.1; document 000,
    section 2.2.1.

    Args:
        seed: Int, seed of the draws; None = a new one each time.
        scale: Float, factor of the scores; None = 1/√K.
        dropout: Float in [0, 1), how often a query reads nothing in training.

    Unlike in `AttentionLayer`, `training` also says whether keys are drawn.
    The weights are 1 at the key that was read and 0 elsewhere.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import HardAttention
        >>> query, key = np.ones((1, 1, 1)), np.array([[[1.0], [5.0], [2.0]]])
        >>> output = HardAttention()(query, key=key)
        >>> np.array(output).tolist()  # the key with the highest score
        [[[5.0]]]
    """

    def __init__(self, *, seed=None, **options):
        super().__init__(**options)
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def probabilities(
        self, query, *, key=None, attention_mask=None, key_mask=None
    ):
        """The probabilities p `(B, T, S)`, with gradients."""
        key = query if key is None else key
        mask = merge_masks(attention_mask, key_mask)
        return masked_softmax(self.score(query, key), mask)

    def attend(
        self,
        query,
        key,
        value,
        mask=None,
        *,
        use_causal_mask=False,
        training=None,
    ):
        if use_causal_mask:
            mask = join_causal_mask(mask, query, key)
        p = masked_softmax(self.score(query, key), mask)  # (B, T, S)
        if training:
            weights = sample_locations(p, self.seed_generator)
        else:
            weights = most_likely_locations(p, p > 0)
        weights = ops.cast(weights, p.dtype)
        places = ops.expand_dims(place_of_highest(weights), -1)  # (B, T, 1)
        read = ops.take_along_axis(value, places, axis=1)  # (B, T, V)
        dropped = drop(self.dropout_layer, weights, training)
        factor = ops.sum(dropped, axis=-1, keepdims=True)  # 0 = reads nothing
        return read * ops.cast(factor, read.dtype), weights
