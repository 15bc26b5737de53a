"""Fewer keys and values than queries: heads that share them."""

from d2l_attention._checks import check_positive
from d2l_attention.multi_head import MultiHeadAttention
import keras
from keras import ops

_register = keras.saving.register_keras_serializable("d2l_attention")


def grouped_scores(query, key):
    """Scaled dot products, query head h with key head ⌊h / (H/G)⌋.

        scores[b, h, t, s] = query[b, t, h] · key[b, s, h // (H/G)] / √K

    The keys are not repeated: the query heads of a group stand side by side,
    as if they were more queries of one head.

    Source: Ainslie et al. (2023), arXiv:2305.13245, section 2.2.

    Args:
        query: Float tensor `(B, T, H, K)`.
        key: Float tensor `(B, S, G, K)`; G divides H.

    Returns:
        Float tensor `(B, H, T, S)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import grouped_scores
        >>> query, key = np.ones((1, 2, 4, 3)), np.ones((1, 5, 2, 3))
        >>> tuple(grouped_scores(query, key).shape)  # 4 heads share 2
        (1, 4, 2, 5)
    """
    groups = key.shape[2]
    b, t, h, k = ops.shape(query)
    query = ops.reshape(query, (b, t, groups, h // groups, k))
    scores = ops.einsum("btgrk,bsgk->bgrts", query, key)
    scores = ops.reshape(scores, (b, h, t, ops.shape(key)[1]))
    return scores / key.shape[-1] ** 0.5


def grouped_sum(weights, value):
    """Weighted sums of values, query head h with value head ⌊h / (H/G)⌋.

        output[b, t, h] = Σ_s weights[b, h, t, s] value[b, s, h // (H/G)]

    Source: Ainslie et al. (2023), arXiv:2305.13245, section 2.2.

    Args:
        weights: Float tensor `(B, H, T, S)`.
        value: Float tensor `(B, S, G, V)`; G divides H.

    Returns:
        Float tensor `(B, T, H, V)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import grouped_sum
        >>> weights = np.ones((1, 4, 1, 1))  # four heads, one query, one key
        >>> value = np.array([[[[5.0], [7.0]]]])  # two heads
        >>> np.array(grouped_sum(weights, value)).ravel().tolist()
        [5.0, 5.0, 7.0, 7.0]
    """
    groups = value.shape[2]
    b, h, t, s = ops.shape(weights)
    weights = ops.reshape(weights, (b, groups, h // groups, t, s))
    heads = ops.einsum("bgrts,bsgv->btgrv", weights, value)
    return ops.reshape(heads, (b, t, h, value.shape[-1]))


class _SharedKeyHeads(MultiHeadAttention):
    """Multi-head attention with G = `num_kv_heads` heads of keys."""

    def score(self, query, key):
        return grouped_scores(query, key)

    def average(self, weights, value):
        return grouped_sum(weights, value)


@_register
class GroupedQueryAttention(_SharedKeyHeads):
    """Multi-head attention whose H query heads share G heads of keys.

        head_h = softmax(Q W_q,h (K W_k,g)ᵀ / √K) V W_v,g,  g = ⌊h / (H/G)⌋
        output = [head_1; …; head_H] W_o

    G = H is multi-head attention, G = 1 multi-query attention. A decoder's
    cache of keys and values is G/H as large, and is read G/H as much for
    each token.

    Source: Ainslie et al. (2023), arXiv:2305.13245, section 2.2; document
    004, section 10.

    Args:
        num_heads: Positive int, H query heads.
        num_kv_heads: Positive int, G heads of keys and values; divides H.
        key_dim: Positive int, features K of queries and keys in each head.
        value_dim: Positive int, features V of the values in each head; None =
            `key_dim`.
        output_dim: Positive int, features of the output; None = those of the
            query.
        dropout: Float in [0, 1), rate of dropout on the weights.
        use_bias: Whether the four projections have biases.

    Call arguments:
        query: Float tensor `(B, T, D)`.
        key: Float tensor `(B, S, D')`; defaults to `query`.
        value: Float tensor `(B, S, D'')`; defaults to `key`.
        attention_mask, query_mask, key_mask, value_mask, mask: Bool tensors;
            see `MultiHeadAttention`.
        use_causal_mask, return_attention_scores, training: Bools; see
            `MultiHeadAttention`.

    Returns:
        Float tensor `(B, T, output_dim)`; with `return_attention_scores`,
        also the weights `(B, H, T, S)`. A query with nothing to attend to
        has weights 0.

    Raises:
        ValueError: If a size is not positive, `num_kv_heads` does not divide
            `num_heads`, `dropout` is outside [0, 1), or shapes do not match.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import GroupedQueryAttention
        >>> layer = GroupedQueryAttention(4, num_kv_heads=2, key_dim=3)
        >>> x = np.ones((1, 5, 8))
        >>> output, weights = layer(x, return_attention_scores=True)
        >>> tuple(weights.shape)  # four heads attend …
        (1, 4, 5, 5)
        >>> tuple(layer.project_key(x).shape)  # … to two
        (1, 5, 2, 3)
    """

    def __init__(
        self,
        num_heads,
        num_kv_heads,
        key_dim,
        *,
        value_dim=None,
        output_dim=None,
        dropout=0.0,
        use_bias=False,
        **kwargs,
    ):
        super().__init__(
            num_heads,
            key_dim,
            value_dim=value_dim,
            output_dim=output_dim,
            dropout=dropout,
            use_bias=use_bias,
            **kwargs,
        )
        self.num_kv_heads = check_positive("num_kv_heads", num_kv_heads)
        if self.num_heads % self.num_kv_heads:
            raise ValueError(
                "`num_kv_heads` must divide `num_heads`. Received: "
                f"num_kv_heads={num_kv_heads}, num_heads={num_heads}."
            )

    def get_config(self):
        return {**super().get_config(), "num_kv_heads": self.num_kv_heads}


@_register
class MultiQueryAttention(_SharedKeyHeads):
    """Multi-head attention with one head of keys and values for all queries.

        head_h = softmax(Q W_q,h (K W_k)ᵀ / √K) V W_v
        output = [head_1; …; head_H] W_o

    Source: Shazeer (2019), arXiv:1911.02150, section 3; document 004,
    section 10. Its purpose is to read less while decoding; it has nothing to
    do with learning several tasks.

    Args:
        num_heads: Positive int, H query heads.
        key_dim: Positive int, features K of queries and keys in each head.
        value_dim: Positive int, features V of the values in each head; None =
            `key_dim`.
        output_dim: Positive int, features of the output; None = those of the
            query.
        dropout: Float in [0, 1), rate of dropout on the weights.
        use_bias: Whether the four projections have biases.

    Call arguments:
        query: Float tensor `(B, T, D)`.
        key: Float tensor `(B, S, D')`; defaults to `query`.
        value: Float tensor `(B, S, D'')`; defaults to `key`.
        attention_mask, query_mask, key_mask, value_mask, mask: Bool tensors;
            see `MultiHeadAttention`.
        use_causal_mask, return_attention_scores, training: Bools; see
            `MultiHeadAttention`.

    Returns:
        Float tensor `(B, T, output_dim)`; with `return_attention_scores`,
        also the weights `(B, H, T, S)`. A query with nothing to attend to
        has weights 0.

    Raises:
        ValueError: If a size is not positive, `dropout` is outside [0, 1), or
            shapes do not match.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import MultiQueryAttention
        >>> layer, x = MultiQueryAttention(4, key_dim=3), np.ones((1, 5, 8))
        >>> output, weights = layer(x, return_attention_scores=True)
        >>> tuple(weights.shape)  # four heads attend …
        (1, 4, 5, 5)
        >>> tuple(layer.project_key(x).shape)  # … to one
        (1, 5, 1, 3)
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        *,
        value_dim=None,
        output_dim=None,
        dropout=0.0,
        use_bias=False,
        **kwargs,
    ):
        super().__init__(
            num_heads,
            key_dim,
            value_dim=value_dim,
            output_dim=output_dim,
            dropout=dropout,
            use_bias=use_bias,
            **kwargs,
        )
        self.num_kv_heads = 1


def share_heads(layer, num_kv_heads):
    """A built `MultiHeadAttention` as `GroupedQueryAttention`.

        W_k,g = mean of W_k,h over the heads h of group g; W_v alike

    Queries and output are copied. The result computes something else, unless
    the heads of a group were equal: it is a start for further training.

    Source: Ainslie et al. (2023), arXiv:2305.13245, section 2.1.

    Args:
        layer: Built `MultiHeadAttention`.
        num_kv_heads: Positive int, G; divides the layer's `num_heads`.

    Returns:
        Built `GroupedQueryAttention`.

    Raises:
        ValueError: If `layer` is not built, or G does not divide H.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import MultiHeadAttention, share_heads
        >>> layer, x = MultiHeadAttention(4, key_dim=3), np.ones((1, 5, 8))
        >>> _ = layer(x)  # builds it
        >>> shared = share_heads(layer, num_kv_heads=2)
        >>> np.size(layer.key_layer.kernel), np.size(shared.key_layer.kernel)
        (96, 48)
    """
    if not layer.built:
        raise ValueError(
            "The layer must be built, or it has no weights to share. "
            f"Received: {layer.name!r}, not built."
        )
    config = {**layer.get_config(), "num_kv_heads": num_kv_heads}
    shared = GroupedQueryAttention.from_config(config)
    inputs = (layer.query_layer, layer.key_layer, layer.value_layer)
    shared.build(*((None, None, x.kernel.shape[0]) for x in inputs))
    for name in ("query_layer", "output_layer"):
        getattr(shared, name).set_weights(getattr(layer, name).get_weights())
    for name, size in (
        ("key_layer", layer.key_dim),
        ("value_layer", layer.value_dim),
    ):
        pairs = (getattr(x, name).weights for x in (layer, shared))
        for old, new in zip(*pairs, strict=True):
            groups = (*old.shape[:-1], num_kv_heads, -1, size)
            pooled = ops.mean(ops.reshape(old, groups), axis=-2)
            new.assign(ops.reshape(pooled, new.shape))
    return shared
