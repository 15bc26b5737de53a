"""Attention to a fixed number of mixtures of the keys."""

from d2l_attention._checks import check_positive
from d2l_attention.layers.base import AttentionLayer
from d2l_attention.layers.masking import key_mask_of
from d2l_attention.layers.multi_head import (
    HeadProjections,
    multi_head_attention,
)
import keras
from keras import ops


def linformer_attention(
    query, key, value, key_mixing, value_mixing, *, key_mask=None
):
    """Softmax over R mixtures of the keys, for any number S of keys.

        output = softmax(q (E k)ᵀ / √K) (F v)

    Each mixture runs over all keys, so all queries see the same keys: there
    is no causal form. Keys and values that may not be attended are zeroed
    before they are mixed. A mixture of zeros alone still has score 0: it
    takes its part of the weights, and adds nothing to the output.

    Source: Wang et al. (2020), arXiv:2006.04768, equation 7; document 004,
    section 8, where the shapes of E and F are transposed.

    Args:
        query: Float tensor `(B, T, H, K)`.
        key, value: Float tensors `(B, S, H, K)` and `(B, S, H, V)`.
        key_mixing, value_mixing: Float tensors `(R, S)`, E and F.
        key_mask: Bool tensor `(B, S)`, True = may be attended.

    Returns:
        Float tensor `(B, T, H, V)`; zeros where no key may be attended.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import linformer_attention
        >>> query, key = np.zeros((1, 1, 1, 2)), np.ones((1, 4, 1, 2))
        >>> value = np.array([1.0, 3.0, 5.0, 9.0]).reshape(1, 4, 1, 1)
        >>> halves = np.array([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]])
        >>> output = linformer_attention(query, key, value, halves, halves)
        >>> np.array(output).round(2).tolist()  # the mean of 2 and 7
        [[[[4.5]]]]
    """
    if key_mask is not None:
        present = ops.cast(key_mask, key.dtype)
        present = ops.expand_dims(ops.expand_dims(present, -1), -1)
        key = ops.multiply(key, present)
        value = ops.multiply(value, present)
    key = ops.einsum("rs,bshk->brhk", key_mixing, key)
    value = ops.einsum("rs,bshv->brhv", value_mixing, value)
    output, _ = multi_head_attention(query, key, value)  # (B, T, H, V)
    return output


@keras.saving.register_keras_serializable("d2l_attention")
class LinformerAttention(HeadProjections, AttentionLayer):
    """Multi-head attention to R mixtures of the keys.

        head_h = softmax(Q W_q,h (E K W_k,h)ᵀ / √K) F V W_v,h
        output = [head_1; …; head_H] W_o

    All heads share E and F (the paper's headwise sharing). For a shorter
    sequence, only the first columns of E and F are used, which is the same
    as padding it.
    The layer never forms the weights `(B, H, T, S)`, so it has neither
    `dropout` nor `return_attention_scores`.

    Source: Wang et al. (2020), arXiv:2006.04768, section 4; document 004,
    section 8.

    Args:
        num_heads, key_dim: Positive ints, H, and K of each query and key.
        max_length: Positive int, the largest number of keys S.
        rank: Positive int, number R of mixtures.
        value_dim, output_dim, use_bias: As in `MultiHeadAttention`.

    Unlike in `AttentionLayer`, a mask must be the same for every query and
    head, `(1, S)` or `(B, 1, S)`, and `use_causal_mask` must be False.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import LinformerAttention
        >>> layer = LinformerAttention(2, key_dim=3, max_length=512, rank=16)
        >>> output = layer(np.ones((1, 300, 4)))  # 16 mixtures of 300 keys
        >>> tuple(output.shape), tuple(layer.key_mixing.shape)
        ((1, 300, 4), (16, 512))
    """

    weights_from = (
        "MultiHeadAttention has both, and the weights that this layer "
        "approximates."
    )

    def __init__(self, num_heads, key_dim, max_length, rank, **options):
        super().__init__(num_heads, key_dim, **options)
        self.max_length = check_positive("max_length", max_length)
        self.rank = check_positive("rank", rank)

    def build(self, query_shape, value_shape=None, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        self.key_mixing = self._add_mixing("E")
        self.value_mixing = self._add_mixing("F")

    def _add_mixing(self, name):
        """A matrix `(R, max_length)`, whose mixtures are as long as a key."""
        stddev = self.max_length**-0.5
        return self.add_weight(
            shape=(self.rank, self.max_length),
            initializer=keras.initializers.RandomNormal(stddev=stddev),
            name=name,
        )

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
            raise ValueError(
                "Linformer has no causal form: each mixture runs over all "
                "keys. Received: use_causal_mask=True."
            )
        size = key.shape[1]
        if isinstance(size, int) and size > self.max_length:
            raise ValueError(
                f"There are more keys than max_length={self.max_length}. "
                f"Received: {size} keys."
            )
        size = ops.shape(key)[1]  # a tensor where S is unknown
        heads = linformer_attention(
            query,
            key,
            value,
            self.key_mixing[:, :size],  # (R, S)
            self.value_mixing[:, :size],  # (R, S)
            key_mask=key_mask_of(mask),
        )
        return self.join_heads(heads), None
