"""What every attention layer with one score per query and key shares.

weights = masked_softmax(score(query, key), mask)
output  = dropout(weights) value
"""

from d2l_attention._checks import check_rate
from d2l_attention.masking import (
    add_causal_mask,
    masked_softmax,
    merge_masks,
)
import keras
from keras import ops


class AttentionLayer(keras.Layer):
    """Scores, masked softmax, weighted sum; subclasses give the score.

    A subclass implements `score` and, where the score begins with one,
    the projection of queries or keys. A decoder that meets the same keys at
    every step projects them once and calls `attend`.

    Args:
        dropout: Float in [0, 1), rate of dropout on the weights.

    Call arguments:
        query: Float tensor `(B, T, D)`.
        key: Float tensor `(B, S, D')`; defaults to `query`.
        value: Float tensor `(B, S, V)`; defaults to `key`.
        attention_mask: Bool tensor that broadcasts to `(B, T, S)`; True =
            may attend. Two axes are read as `(T, S)`, never as `(B, S)`.
        key_mask: Bool tensor `(B, S)`, True at keys that exist.
        value_mask: Bool tensor `(B, S)`; it masks the keys of these values.
        query_mask, mask: Bool tensors `(B, T)`; they mask the keys where the
            queries are the keys, and change nothing otherwise. Keras fills
            `mask` or the masks of query, key and value from implicit masks,
            such as that of `Embedding(mask_zero=True)`.
        use_causal_mask: Whether query t sees no key behind t + S − T.
        return_attention_scores: If True, also return the weights, as they
            were before dropout. (The name is that of Keras; what it calls
            scores are the weights, after the softmax.)
        training: Whether dropout is active.

    Returns:
        Float tensor `(B, T, V)`; with `return_attention_scores`, also the
        weights `(B, T, S)`. A query with nothing to attend to gets zeros.

    Raises:
        ValueError: If `dropout` is outside [0, 1), or shapes do not match.
    """

    def __init__(self, *, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.dropout = check_rate("dropout", dropout)
        self.dropout_layer = keras.layers.Dropout(
            dropout, dtype=self.dtype_policy
        )
        self.supports_masking = True

    def project_query(self, query):
        """What `score` needs to know of the queries."""
        return query

    def project_key(self, key):
        """What `score` needs to know of the keys."""
        return key

    def project_value(self, value):
        """What is averaged."""
        return value

    def score(self, query, key):
        """Scores `(B, T, S)` of projected queries and keys."""
        raise NotImplementedError

    def attend(self, query, key, value, mask=None, training=None):
        """Output and weights for projected queries and keys."""
        weights = masked_softmax(self.score(query, key), mask)  # (B, T, S)
        kept = drop(self.dropout_layer, weights, training)
        return ops.matmul(kept, value), weights  # (B, T, V)

    def call(
        self,
        query,
        *,
        key=None,
        value=None,
        attention_mask=None,
        query_mask=None,
        key_mask=None,
        value_mask=None,
        mask=None,
        use_causal_mask=False,
        return_attention_scores=False,
        training=None,
    ):
        own_masks = [query_mask, mask] if key is None else []
        key, value = default_inputs(query, key, value)
        mask = merge_masks(attention_mask, key_mask, value_mask, *own_masks)
        if use_causal_mask:
            mask = add_causal_mask(mask, *query_and_key_size(query, key))
        output, weights = self.attend(
            self.project_query(query),
            self.project_key(key),
            self.project_value(value),
            mask,
            training,
        )
        return (output, weights) if return_attention_scores else output

    def compute_output_shape(
        self, query_shape, key_shape=None, value_shape=None
    ):
        shapes = default_shapes(query_shape, key_shape, value_shape)
        return (*shapes[0][:-1], shapes[2][-1])

    def compute_output_spec(
        self,
        query,
        *,
        key=None,
        value=None,
        return_attention_scores=False,
        **masks_and_mode,
    ):
        key, value = default_inputs(query, key, value)
        shapes = (
            self.compute_output_shape(query.shape, key.shape, value.shape),
            (*query.shape[:-1], key.shape[1]),
        )
        output, weights = (
            keras.KerasTensor(shape, dtype=self.compute_dtype)
            for shape in shapes
        )
        return (output, weights) if return_attention_scores else output

    def get_config(self):
        return {**super().get_config(), "dropout": self.dropout}


def drop(dropout_layer, x, training):
    """Dropout, if there is any, in the layer's compute dtype.

    Under `keras.RematScope` JAX traces `training`, and Keras's own layer asks
    for its value even at a rate of 0.
    """
    if dropout_layer.rate:
        return dropout_layer(x, training=training)
    return ops.cast(x, dropout_layer.compute_dtype)


def default_inputs(query, key=None, value=None):
    """Keys and values, which default to the queries and to the keys."""
    key = query if key is None else key
    value = key if value is None else value
    check_shapes(*(getattr(x, "shape", x) for x in (query, key, value)))
    return key, value


def default_shapes(query_shape, key_shape=None, value_shape=None):
    """The three shapes as tuples, by the same defaults."""
    key_shape = query_shape if key_shape is None else key_shape
    value_shape = key_shape if value_shape is None else value_shape
    check_shapes(query_shape, key_shape, value_shape)
    return tuple(query_shape), tuple(key_shape), tuple(value_shape)


def query_and_key_size(query, key):
    """T and S, as numbers or, where unknown, as tensors."""
    return ops.shape(query)[1], ops.shape(key)[1]


def check_shapes(*shapes):
    """Refuse shapes of queries, keys and values that cannot match."""
    if not all(_has_axes(shape, 3) for shape in shapes):
        raise ValueError(
            "query, key and value must have three axes (batch, positions, "
            f"features). Received: {_named(shapes)}."
        )
    query, key, value = shapes
    if _differ(key[1], value[1]):
        raise ValueError(
            f"There must be one value for each key. Received: {_named(shapes)}."
        )
    if _differ(query[0], key[0]) or _differ(key[0], value[0]):
        raise ValueError(
            "query, key and value must have the same batch size. Received: "
            f"{_named(shapes)}."
        )


def _has_axes(shape, number):
    try:
        return len(shape) == number
    except (TypeError, ValueError):  # no tensor, or one of unknown rank
        return False


def _differ(a, b):
    return isinstance(a, int) and isinstance(b, int) and a != b


def _named(shapes):
    names = ("query", "key", "value")
    return ", ".join(
        f"{name} {shape}" for name, shape in zip(names, shapes, strict=True)
    )
