"""A multi-head layer turned into one whose heads share keys and values."""

from d2l_attention.efficient.multi_query import GroupedQueryAttention
from keras import ops


def share_heads(layer, num_kv_heads):
    """Make a `GroupedQueryAttention` from a `MultiHeadAttention`.

        W_k,g = mean of W_k,h over the heads h of group g; W_v alike

    W_q and W_o are copied. The new layer computes the same only if the heads
    of each group were equal; otherwise it is a start for further training.

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
