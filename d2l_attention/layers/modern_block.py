"""The modern block: pre-norm, SwiGLU, QK-norm, rotation, shared key heads.

Norms come first and only divide by the root of the mean square, the
position-wise net has a gate, queries and keys are normalized and rotated, and
heads share keys and values.
"""

from d2l_attention._checks import check_positive
from d2l_attention._config import Configurable
from d2l_attention.layers.base import wide
from d2l_attention.layers.blocks import AddNorm, ResidualBlock
from d2l_attention.layers.masking import check_mask, masked_softmax
from d2l_attention.layers.multi_head import split_heads
from d2l_attention.layers.multi_query import grouped_scores, grouped_sum
from d2l_attention.layers.windows_and_sinks import (
    WindowAttention,
    sink_softmax,
)
import keras
from keras import ops


def soft_cap(scores, cap):
    """Scores that can be no further from 0 than the cap.

        cap tanh(scores / cap)

    Small scores stay as they are. A mask comes after the cap: a score of −∞
    becomes −cap, and its key is seen again.

    Source: Gemma Team (2024), arXiv:2408.00118, section 2.

    Args:
        scores: Float tensor.
        cap: Positive float; None = the scores as they are.

    Returns:
        Float tensor like `scores`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import soft_cap
        >>> scores = np.array([0.1, 2.0, 30.0])
        >>> np.array(soft_cap(scores, cap=2.0)).round(2).tolist()
        [0.1, 1.52, 2.0]
    """
    if cap is None:
        return scores
    return check_cap(cap) * ops.tanh(ops.convert_to_tensor(scores) / cap)


def check_cap(cap):
    """The cap as a float, or None; refuse one that is not positive."""
    if cap is None:
        return None
    if not 0 < cap < float("inf"):
        raise ValueError(
            f"`soft_cap` must be positive and finite. Received: {cap}."
        )
    return float(cap)


def sparsemax(scores, mask=None):
    """Weights that are exactly 0 for keys with low scores.

        weights = the point p with p ≥ 0, Σ p = 1 nearest to the scores
                = max(scores − τ, 0), with τ such that they sum to 1

    Of two keys the weight of the first is (1 + a − b)/2, cut off at 0 and 1,
    where a softmax has the logistic function of a − b.

    Source: Martins and Astudillo (2016), arXiv:1602.02068, algorithm 1.

    Args:
        scores: Float tensor `(..., T, S)`.
        mask: As in `masked_softmax`.

    Returns:
        Float tensor `(..., T, S)` of the dtype of `scores`. Rows sum to 1,
        or to 0 where nothing may be attended.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import sparsemax
        >>> scores = np.array([[0.5, 0.0, -3.0], [2.0, 0.0, -3.0]])
        >>> np.array(sparsemax(scores)).tolist()
        [[0.75, 0.25, 0.0], [1.0, 0.0, 0.0]]
    """
    scores, mask, dtype = _wide(scores, mask)
    # Of a masked key: so low that the threshold τ never reaches it.
    highest = ops.max(
        ops.where(mask, scores, -float("inf")), axis=-1, keepdims=True
    )
    highest = ops.where(ops.isfinite(highest), highest, 0.0)
    scores = ops.where(mask, scores - ops.stop_gradient(highest), -2.0)
    # τ is at least −1, so a score 1 below the highest has weight 0.
    ordered = -ops.sort(-scores, axis=-1)
    count = ops.cumsum(ops.ones_like(ordered), axis=-1)
    total = ops.cumsum(ordered, axis=-1)
    supported = 1.0 + count * ordered > total
    size = ops.sum(ops.cast(supported, scores.dtype), axis=-1, keepdims=True)
    kept = ops.where(supported, ordered, 0.0)
    threshold = (ops.sum(kept, axis=-1, keepdims=True) - 1.0) / size
    weights = ops.maximum(scores - threshold, 0.0)
    return ops.cast(ops.where(mask, weights, 0.0), dtype)


def sigmoid_weights(scores, mask=None):
    """Weights of which each depends on its own score alone.

        weights[t, s] = sigmoid(scores[t, s] − ln n_t)

    Here n_t is how many keys query t sees. Keys do not compete, and a row
    need not sum to 1. With scores of 0 it sums to n/(n + 1).

    Source: Ramapuram et al. (2024), arXiv:2409.04431, where n is the length.

    Args:
        scores: Float tensor `(..., T, S)`.
        mask: As in `masked_softmax`.

    Returns:
        Float tensor `(..., T, S)` of the dtype of `scores`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import sigmoid_weights
        >>> found = sigmoid_weights(np.zeros((1, 4), "float32"))
        >>> print(np.array(found).round(3))  # 4/5 together
        [[0.2 0.2 0.2 0.2]]
    """
    scores, mask, dtype = _wide(scores, mask)
    visible = ops.sum(ops.cast(mask, scores.dtype), axis=-1, keepdims=True)
    bias = ops.log(ops.maximum(visible, 1.0))
    weights = ops.sigmoid(ops.where(mask, scores, 0.0) - bias)
    return ops.cast(ops.where(mask, weights, 0.0), dtype)


def _wide(scores, mask):
    """Scores of float32 or wider, a mask of their shape, and their dtype."""
    scores = ops.convert_to_tensor(scores)
    dtype = scores.dtype
    scores = ops.cast(scores, wide(dtype))
    if not keras.backend.is_float_dtype(dtype):
        dtype = scores.dtype
    seen = scores > -float("inf")
    if mask is not None:
        seen = ops.logical_and(check_mask(mask, scores.shape), seen)
    return scores, seen, dtype


def attend_over_depth(query, outputs, mask=None, epsilon=1e-6):
    """What a layer reads: a weighted mean of what earlier layers wrote.

        weights[l] = softmax over l of query · rms(outputs[l])
        read       = Σ_l weights[l] outputs[l]

    The residual stream of a pre-norm model is the sum of the outputs, with the
    weight 1 each. rms divides by the root of the mean square.

    Source: Kimi Team (2026), arXiv:2603.15031; attention residuals.

    Args:
        query: Float tensor that broadcasts to `(B, T, D)`: there a learned
            vector `(D,)` of each layer. With zeros all weights are equal.
        outputs: Float tensor `(B, T, L, D)`, what L layers wrote at each
            token, the embedding first.
        mask: Bool tensor that broadcasts to `(B, T, L)`, True = may be read.
        epsilon: Float, added to the mean square.

    Returns:
        Float tensor `(B, T, D)`, and the weights `(B, T, L)`. Where nothing
        may be read, both are 0.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import attend_over_depth
        >>> outputs = np.array([[[[2.0, 0.0], [0.0, 4.0]]]])  # of two layers
        >>> read, _ = attend_over_depth(np.zeros(2), outputs)
        >>> np.array(read).tolist()
        [[[1.0, 2.0]]]
    """
    outputs = ops.convert_to_tensor(outputs)
    query = ops.cast(query, outputs.dtype)
    if mask is not None:  # what may not be read may hold anything
        outputs = ops.where(ops.expand_dims(mask, -1), outputs, 0.0)
    # At least float32: in float16 the square of 256 is infinite.
    keys = ops.cast(outputs, wide(outputs.dtype))
    mean_square = ops.mean(keys * keys, axis=-1, keepdims=True)
    keys = ops.cast(keys / ops.sqrt(mean_square + epsilon), outputs.dtype)
    scores = ops.sum(ops.expand_dims(query, -2) * keys, axis=-1)  # (B, T, L)
    weights = masked_softmax(scores, mask)
    read = ops.sum(ops.expand_dims(weights, -1) * outputs, axis=-2)
    return read, weights


def rms_norm(**options):
    """Keras's RMS norm, which passes masks on; Keras does not say so."""
    norm = keras.layers.RMSNormalization(**options)
    norm.supports_masking = True
    return norm


@keras.saving.register_keras_serializable("d2l_attention")
class SwiGLU(Configurable, keras.Layer):
    """The gated feed-forward network of modern models.

        SwiGLU(x) = (silu(x W₁) ∘ x W₂) W₃,  silu(z) = z sigmoid(z)

    It has three kernels and no biases. With two thirds of the width it has as
    many parameters as the kernels of a `PositionWiseFFN`.

    Source: Shazeer (2020), arXiv:2002.05202, section 2.

    Args:
        ffn_dim: Positive int, width of the hidden layer.
        output_dim: Positive int; None = the features of the input.

    Call arguments:
        x: Float tensor `(..., D)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import PositionWiseFFN, SwiGLU
        >>> old, new = PositionWiseFFN(4 * 48), SwiGLU(8 * 48 // 3)
        >>> old.build((None, 48))
        >>> new.build((None, 48))
        >>> new.count_params(), old.count_params() - 4 * 48 - 48
        (18432, 18432)
    """

    def __init__(self, ffn_dim, output_dim=None, **kwargs):
        super().__init__(**kwargs)
        self.ffn_dim = check_positive("ffn_dim", ffn_dim)
        self.output_dim = check_positive("output_dim", output_dim, None)
        self.supports_masking = True

    def build(self, input_shape):
        output_dim = self.output_dim or input_shape[-1]
        options = {"use_bias": False, "dtype": self.dtype_policy}
        self.gate = keras.layers.Dense(
            self.ffn_dim, "silu", name="gate", **options
        )
        self.hidden = keras.layers.Dense(self.ffn_dim, name="hidden", **options)
        self.output_layer = keras.layers.Dense(
            output_dim, name="output", **options
        )
        self.gate.build(input_shape)
        self.hidden.build(input_shape)
        self.output_layer.build((*input_shape[:-1], self.ffn_dim))

    def call(self, x):
        return self.output_layer(self.gate(x) * self.hidden(x))

    def compute_output_shape(self, x_shape):
        return (*x_shape[:-1], self.output_dim or x_shape[-1])


@keras.saving.register_keras_serializable("d2l_attention")
class ModernAttention(WindowAttention):
    """The causal attention of modern language models, with QK-norm.

        q_h = R_t(rms(x_t W_q,h)),  k_g = R_s(rms(x_s W_k,g))
        head_h = softmax(cap tanh(q_h · k_g / (√K cap))) x W_v,g
        output = ([head_1; …; head_H] ∘ sigmoid(x W_g)) W_o

    rms divides the K features of a query or a key by the root of their mean
    square and multiplies them by gains, the same for all heads (QK-norm). R_p
    rotates by position. What is optional is off by default: the cap, the gate
    W_g, a window, and a sink in the softmax's denominator. A cache holds
    normalized and rotated keys, in a ring where there is a window.

    Source: QK-norm, Henry et al. (2020), arXiv:2010.04245, here with the gains
    and before the rotation, as Qwen3 has it; gate, Qiu et al. (2025),
    arXiv:2505.06708, elementwise; cap, Gemma Team (2024), arXiv:2408.00118.

    Args:
        num_heads, key_dim: As in `RotaryAttention`.
        window: Positive int, W tokens that a query sees; None = all earlier.
        use_sinks: Whether each head has a learned sink, as `SinkAttention`.
        use_gate: Whether a sigmoid of x multiplies what the heads read.
        soft_cap: Positive float, the cap of the scores; None = none.
        epsilon: Float, added to the mean square.
        num_kv_heads, frequencies: As in `RotaryAttention`.
        interleaved, magnitude: As in `rotate`.
        dropout, value_dim, output_dim, use_bias: As in `MultiHeadAttention`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import ModernAttention
        >>> layer, x = ModernAttention(1, key_dim=4), np.eye(3, 8)[None]
        >>> small, large = layer(x), layer(1000 * x)  # scores are the same
        >>> bool(np.allclose(1000 * np.array(small), large, rtol=0.01))
        True
    """

    window_is_optional = True

    def __init__(
        self,
        num_heads,
        key_dim,
        *,
        window=None,
        use_sinks=False,
        use_gate=False,
        soft_cap=None,
        epsilon=1e-6,
        **options,
    ):
        super().__init__(num_heads, key_dim, window, **options)
        self.use_sinks = use_sinks
        self.use_gate = use_gate
        self.soft_cap = check_cap(soft_cap)
        self.epsilon = epsilon

    def build(self, query_shape, value_shape=None, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        self.query_norm = self._norm("query_norm")
        self.key_norm = self._norm("key_norm")
        if self.use_gate:
            size = self.num_heads * self.value_dim
            self.gate_layer = self._dense("W_g", size, query_shape[-1])
        if self.use_sinks:
            self.sinks = self.add_weight(
                (self.num_heads,), "zeros", name="sinks", autocast=False
            )

    def _norm(self, name):
        norm = rms_norm(
            epsilon=self.epsilon, name=name, dtype=self.dtype_policy
        )
        norm.build((None, None, None, self.key_dim))
        return norm

    def project_query(self, query, start=0):
        """Queries `(B, T, H, K)`, and the gate's V features after them."""
        heads = split_heads(self.query_layer(query), self.num_heads)
        heads = self.rotate(self.query_norm(heads), start)
        if not self.use_gate:
            return heads
        gate = split_heads(self.gate_layer(query), self.num_heads)
        return ops.concatenate([heads, gate], axis=-1)

    def project_key(self, key, start=0):
        """Keys `(B, S, G, K)`, normalized and then rotated."""
        heads = split_heads(self.key_layer(key), self.num_kv_heads)
        return self.rotate(self.key_norm(heads), start)

    def equation(self, query, key, value, mask, dropout):
        k = self.key_dim
        scores = grouped_scores(query[..., :k], key)  # (B, H, T, S)
        scores = soft_cap(scores, self.soft_cap)
        if self.use_sinks:
            weights = sink_softmax(scores, self.sinks, mask)
        else:
            weights = masked_softmax(scores, mask)
        heads = grouped_sum(dropout(weights), value)  # (B, T, H, V)
        if self.use_gate:
            heads = heads * ops.sigmoid(query[..., k:])
        return heads, weights


@keras.saving.register_keras_serializable("d2l_attention")
class AddRMSNorm(AddNorm):
    """`AddNorm` with RMS norm, which does not subtract the mean."""

    norm_class = staticmethod(rms_norm)


@keras.saving.register_keras_serializable("d2l_attention")
class ModernBlock(ResidualBlock):
    """A modern causal block: pre-norm, rotation, QK-norm and SwiGLU.

        y = x + attention(rms(x))
        output = y + SwiGLU(rms(y))

    The attention is a `ModernAttention`. There are no biases. Nothing
    normalizes the sum, so a model needs a norm after its last block.

    Args:
        dim, num_heads: As in `CausalBlock`.
        ffn_dim: Positive int, width of the `SwiGLU`.
        num_kv_heads: Positive int, G; divides `num_heads`. None = `num_heads`.
        key_dim: Positive int, K; None = `dim` / `num_heads`.
        frequencies, window, use_sinks, use_gate: As in `ModernAttention`.
        soft_cap: As there.
        dropout: Float in [0, 1), rate of dropout on weights and residuals.
        epsilon: Float, added to the mean squares.

    Unlike `TransformerEncoderBlock`, there is no `use_causal_mask`: the causal
    mask is always on.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import ModernBlock
        >>> block, x = ModernBlock(8, 2, ffn_dim=16), np.ones((1, 3, 8))
        >>> _ = block(x)  # builds it
        >>> for layer in (block.self_attention, block.ffn):
        ...     kernel = layer.output_layer.kernel
        ...     _ = kernel.assign(np.zeros(kernel.shape))
        >>> bool(np.all(np.array(block(x)) == x))  # both branches are 0
        True
    """

    add_norm_class = AddRMSNorm

    def __init__(
        self,
        dim,
        num_heads,
        ffn_dim,
        *,
        num_kv_heads=None,
        key_dim=None,
        frequencies=None,
        window=None,
        use_sinks=False,
        use_gate=False,
        soft_cap=None,
        dropout=0.0,
        epsilon=1e-6,
        **kwargs,
    ):
        super().__init__(
            dim,
            ffn_dim,
            dropout=dropout,
            normalize_first=True,
            epsilon=epsilon,
            **kwargs,
        )
        self.num_heads = check_positive("num_heads", num_heads)
        self.key_dim = check_positive("key_dim", key_dim, None)
        if self.key_dim is None and dim % num_heads:
            raise ValueError(
                "Without a `key_dim`, `num_heads` must divide `dim`. Received: "
                f"num_heads={num_heads}, dim={dim}."
            )
        self.num_kv_heads = num_kv_heads
        self.frequencies = frequencies
        self.window = window
        self.use_sinks = use_sinks
        self.use_gate = use_gate
        self.soft_cap = soft_cap
        self.add_sublayers()
        self.num_kv_heads = self.self_attention.num_kv_heads
        self.frequencies = self.self_attention.frequencies

    def make_attention(self, name):
        return ModernAttention(
            self.num_heads,
            self.key_dim or self.dim // self.num_heads,
            num_kv_heads=self.num_kv_heads,
            frequencies=self.frequencies,
            window=self.window,
            use_sinks=self.use_sinks,
            use_gate=self.use_gate,
            soft_cap=self.soft_cap,
            epsilon=self.epsilon,
            output_dim=self.dim,
            dropout=self.dropout,
            dtype=self.dtype_policy,
            name=name,
        )

    def make_ffn(self):
        return SwiGLU(self.ffn_dim, self.dim, dtype=self.dtype_policy)
