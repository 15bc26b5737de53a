"""GQA and MQA: query heads that share fewer heads of keys and values."""

from d2l_attention._checks import check_positive
from d2l_attention.layers.masking import masked_softmax
from d2l_attention.layers.multi_head import MultiHeadAttention
from d2l_attention.layers.reshaping import reshape
import keras
from keras import ops


def grouped_query_attention(query, key, value, mask=None, dropout=None):
    """Attention of H query heads to G heads of keys and values.

        weights = softmax(query keyᵀ / √K)
        output  = dropout(weights) value

    Query head h attends to head ⌊hG/H⌋ of keys and values; G divides H. With
    G = H this is `multi_head_attention`.

    Source: Ainslie et al. (2023), arXiv:2305.13245, section 2.2; document
    004, section 10.

    Args:
        query: Float tensor `(B, T, H, K)`.
        key, value: Float tensors `(B, S, G, K)` and `(B, S, G, V)`.
        mask, dropout: As in `multi_head_attention`.

    Returns:
        Float tensor `(B, T, H, V)`, and the weights `(B, H, T, S)` as they
        were before dropout. A query with nothing to attend to gets zeros.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import grouped_query_attention
        >>> query, key = np.ones((1, 1, 4, 3)), np.ones((1, 1, 2, 3))
        >>> value = np.array([[[[5.0], [7.0]]]])  # two heads, four queries
        >>> output, _ = grouped_query_attention(query, key, value)
        >>> np.array(output).ravel().tolist()
        [5.0, 5.0, 7.0, 7.0]
    """
    scores = grouped_scores(query, key)  # (B, H, T, S)
    weights = masked_softmax(scores, mask)
    dropped = weights if dropout is None else dropout(weights)
    return grouped_sum(dropped, value), weights  # (B, T, H, V)


def grouped_scores(query, key, scale=None):
    """Scaled dot products, `(B, T, H, K)` and `(B, S, G, K)` to `(B, H, T, S)`.

        scores[b, h, t, s] = scale query[b, t, h] · key[b, s, ⌊hG/H⌋]

    A `scale` of None is 1/√K. It multiplies the queries, since in float16 a
    product of 65,520 would be infinite.

    The keys are not copied, because the query heads of a group are treated as
    additional queries of one head.
    """
    groups = key.shape[2]
    b, t, h, k = ops.shape(query)
    if scale is None:
        scale = key.shape[-1] ** -0.5
    query = reshape(query * scale, (b, t, groups, h // groups, k))
    scores = ops.einsum("btgrk,bsgk->bgrts", query, key)  # r in a group
    return reshape(scores, (b, h, t, ops.shape(key)[1]))


def grouped_sum(weights, value):
    """Weighted sums, `(B, H, T, S)` and `(B, S, G, V)` to `(B, T, H, V)`.

    output[b, t, h] = Σ_s weights[b, h, t, s] value[b, s, ⌊hG/H⌋]
    """
    groups = value.shape[2]
    b, h, t, s = ops.shape(weights)
    weights = reshape(weights, (b, groups, h // groups, t, s))
    heads = ops.einsum("bgrts,bsgv->btgrv", weights, value)
    return reshape(heads, (b, t, h, value.shape[-1]))


def check_shared_heads(num_kv_heads, num_heads):
    """The number of heads of keys and values; it must divide the others."""
    shared = check_positive("num_kv_heads", num_kv_heads)
    if num_heads % shared:
        raise ValueError(
            "`num_kv_heads` must divide `num_heads`. Received: "
            f"num_kv_heads={num_kv_heads}, num_heads={num_heads}."
        )
    return shared


@keras.saving.register_keras_serializable("d2l_attention")
class GroupedQueryAttention(MultiHeadAttention):
    """GQA: multi-head attention whose H query heads share G heads of keys.

        head_h = softmax(Q W_q,h (K W_k,g)ᵀ / √K) V W_v,g,  g = ⌊h / (H/G)⌋
        output = [head_1; …; head_H] W_o

    G = H is multi-head attention, G = 1 multi-query attention. A decoder's
    cache of keys and values has G/H of the size, and for each token a decoder
    reads G/H as much.

    Source: Ainslie et al. (2023), arXiv:2305.13245, section 2.2; document
    004, section 10.

    Args:
        num_heads: Positive int, H query heads.
        num_kv_heads: Positive int, G heads of keys and values; divides H.
        key_dim: As in `MultiHeadAttention`.
        dropout, value_dim, output_dim, use_bias: As there.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import GroupedQueryAttention
        >>> layer, x = GroupedQueryAttention(4, 2, 3), np.ones((1, 5, 8))
        >>> _ = layer(x)  # builds it
        >>> tuple(layer.project_key(x).shape)  # four heads attend to two
        (1, 5, 2, 3)
    """

    equation = staticmethod(grouped_query_attention)

    def __init__(self, num_heads, num_kv_heads, key_dim, **options):
        super().__init__(num_heads, key_dim, **options)
        self.num_kv_heads = check_shared_heads(num_kv_heads, self.num_heads)


@keras.saving.register_keras_serializable("d2l_attention")
class MultiQueryAttention(MultiHeadAttention):
    """MQA: multi-head attention with one head of keys and values for all.

        head_h = softmax(Q W_q,h (K W_k)ᵀ / √K) V W_v
        output = [head_1; …; head_H] W_o

    Source: Shazeer (2019), arXiv:1911.02150, section 3; document 004,
    section 10. It makes a decoder read less for each token. It has nothing to
    do with learning several tasks.

    Args:
        num_heads, key_dim: As in `MultiHeadAttention`.
        dropout, value_dim, output_dim, use_bias: As there.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import MultiQueryAttention
        >>> layer, x = MultiQueryAttention(4, key_dim=3), np.ones((1, 5, 8))
        >>> _ = layer(x)  # builds it
        >>> tuple(layer.project_key(x).shape)  # four heads attend to one
        (1, 5, 1, 3)
    """

    equation = staticmethod(grouped_query_attention)

    def __init__(self, num_heads, key_dim, **options):
        super().__init__(num_heads, key_dim, **options)
        self.num_kv_heads = 1


def share_heads(layer, num_kv_heads):
    """Make a `GroupedQueryAttention` from a `MultiHeadAttention`.

        W_k,g = mean of W_k,h over the heads h of group g; W_v alike

    W_q and W_o are copied. The new layer computes the same only if the heads
    of each group were equal; otherwise it is a start for further training.

    Source: Ainslie et al. (2023), arXiv:2305.13245, section 2.1.

    Args:
        layer: Built `MultiHeadAttention` or `GroupedQueryAttention`.
        num_kv_heads: Positive int, G; divides the layer's `num_heads`.

    Returns:
        Built `GroupedQueryAttention`.

    Raises:
        ValueError: If `layer` is another subclass or not built, or G does not
            divide H.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import MultiHeadAttention
        >>> from d2l_attention.layers.multi_query import share_heads
        >>> layer, x = MultiHeadAttention(4, key_dim=3), np.ones((1, 5, 8))
        >>> _ = layer(x)  # builds it
        >>> shared = share_heads(layer, num_kv_heads=2)
        >>> np.size(layer.key_layer.kernel), np.size(shared.key_layer.kernel)
        (96, 48)
    """
    # Another subclass does more: it has positions, a window or sinks.
    if type(layer) not in (MultiHeadAttention, GroupedQueryAttention):
        raise ValueError(
            "`layer` must be a MultiHeadAttention or GroupedQueryAttention, "
            f"and none of its subclasses. Received: {type(layer).__name__}."
        )
    if not layer.built:
        raise ValueError(
            "The layer must be built, or it has no weights to share. "
            f"Received: {layer.name!r}, not built."
        )
    config = {**layer.get_config(), "num_kv_heads": num_kv_heads}
    shared = GroupedQueryAttention.from_config(config)
    inputs = (layer.query_layer, layer.value_layer, layer.key_layer)
    shared.build(*((None, None, x.kernel.shape[0]) for x in inputs))
    shared.query_layer.set_weights(layer.query_layer.get_weights())
    shared.output_layer.set_weights(layer.output_layer.get_weights())
    _assign_means(shared.key_layer, layer.key_layer, layer.key_dim)
    _assign_means(shared.value_layer, layer.value_layer, layer.value_dim)
    return shared


def _assign_means(shared, dense, size):
    """Assign the mean over the heads of each group; `size` columns a head."""
    num_kv_heads = shared.units // size
    for new, old in zip(shared.weights, dense.weights, strict=True):
        heads = (*old.shape[:-1], num_kv_heads, -1, size)
        means = ops.mean(ops.reshape(old, heads), axis=-2)  # (…, G, size)
        new.assign(ops.reshape(means, new.shape))
