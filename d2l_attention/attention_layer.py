"""What every attention layer with one score per query and key shares.

weights = masked_softmax(score(query, key), mask)
output  = dropout(weights) value
"""

from d2l_attention._checks import check_rate
from d2l_attention.masking import masked_softmax, merge_masks
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
        key_mask: Bool tensor `(B, S)`. Keras fills it, or `query_mask` or
            `mask` when the query is the key, from an implicit mask such as
            that of `Embedding(mask_zero=True)`.
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

    def __init__(self, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        check_rate("dropout", dropout)
        self.dropout = dropout
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
        weights = masked_softmax(self.score(query, key), mask)
        kept = self.dropout_layer(weights, training=training)
        return ops.matmul(kept, value), weights

    def call(
        self,
        query,
        *,
        key=None,
        value=None,
        attention_mask=None,
        query_mask=None,
        key_mask=None,
        mask=None,
        return_attention_scores=False,
        training=None,
    ):
        if key is None:
            key = query
            if key_mask is None:
                key_mask = mask if query_mask is None else query_mask
        value = key if value is None else value
        _check_shapes(query.shape, key.shape, value.shape)
        output, weights = self.attend(
            self.project_query(query),
            self.project_key(key),
            self.project_value(value),
            merge_masks(attention_mask, key_mask),
            training,
        )
        return (output, weights) if return_attention_scores else output

    def compute_output_spec(
        self,
        query,
        *,
        key=None,
        value=None,
        return_attention_scores=False,
        **masks_and_mode,
    ):
        key = query if key is None else key
        value = key if value is None else value
        _check_shapes(query.shape, key.shape, value.shape)
        rows = tuple(query.shape[:-1])
        output, weights = (
            keras.KerasTensor((*rows, columns), dtype=self.compute_dtype)
            for columns in (value.shape[-1], key.shape[1])
        )
        return (output, weights) if return_attention_scores else output

    def get_config(self):
        return {**super().get_config(), "dropout": self.dropout}


def _check_shapes(query, key, value):
    if not len(query) == len(key) == len(value) == 3:
        raise ValueError(
            "query, key and value must have three axes (batch, positions, "
            f"features). Received: query {query}, key {key}, value {value}."
        )
    if None not in (key[1], value[1]) and key[1] != value[1]:
        raise ValueError(
            "There must be one value for each key. Received: "
            f"key {key}, value {value}."
        )
