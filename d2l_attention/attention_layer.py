"""The base of attention layers without heads, and input checks for all.

weights = masked_softmax(score(query, key), mask)
output  = dropout(weights) value
"""

import functools
import inspect

from d2l_attention._checks import check_masks, check_rate, check_tensor
from d2l_attention._signature import ConstructorSignature
from d2l_attention.masking import (
    join_causal_mask,
    masked_softmax,
    merge_masks,
    token_mask,
)
import keras
from keras import ops


class QueryLayer(keras.Layer):
    """A layer of queries, which says how a wrong call should be written.

    Keras binds the arguments before `call` and names no remedy for what does
    not fit, so the layer looks at them first.
    """

    def __call__(self, *inputs, **named):
        by_position, by_name = _arguments(type(self).call)
        layer = type(self).__name__
        if len(inputs) > len(by_position):
            written = [*by_position, *(f"{x}=…" for x in by_name[:2])]
            raise TypeError(
                f"{layer} takes {' and '.join(by_position)} by position, and "
                f"all else by name: layer({', '.join(written)}). Received: "
                f"{len(inputs)} arguments by position."
            )
        known = [*by_position, *by_name]
        # Keras hands `training` to those layers only that ask for it
        if unknown := sorted({*named} - {*known, "training"}):
            raise TypeError(
                f"{layer} takes no {' and no '.join(unknown)}. It takes "
                f"{', '.join(known)}."
            )
        given = named | dict(zip(by_position, inputs, strict=False))
        for name in {"query", "value", "key"} & given.keys():
            check_tensor(name, given[name], by_position)
        check_masks({x: y for x, y in given.items() if y is not None})
        return super().__call__(*inputs, **named)


@functools.cache
def _arguments(call):
    """The names that a `call` takes by position, and those by name."""
    _, *arguments = inspect.signature(call).parameters.values()  # not `self`
    by_name = [x.name for x in arguments if x.kind is x.KEYWORD_ONLY]
    return [x.name for x in arguments if x.name not in by_name], by_name


class AttentionLayer(QueryLayer):
    """Scores, masked softmax, weighted sum; subclasses give the score.

    A subclass implements `score`. If its score takes projected queries or
    keys, it also overrides `project_query` or `project_key`. A decoder that
    meets the same keys at every step projects them once and calls `attend`.

    Args:
        dropout: Float in [0, 1), rate of dropout on the weights.

    Call arguments:
        query: Float tensor `(B, T, D)`.
        value: Float tensor `(B, S, V)`; defaults to `key`.
        key: Float tensor `(B, S, D')`; defaults to `value`. Without both, the
            queries are the keys and values.
        attention_mask: Bool tensor that broadcasts to `(B, T, S)`; True =
            may attend. Two axes are read as `(T, S)`, never as `(B, S)`.
        key_mask: Bool tensor `(B, S)`, True at keys that exist.
        value_mask: Bool tensor `(B, S)`; it masks the keys of these values.
        query_mask, mask: Bool tensors `(B, T)`; they mask the keys where the
            queries are the keys, and change nothing otherwise. Keras fills
            `mask` or the masks of query, key and value from implicit masks,
            such as that of `Embedding(mask_zero=True)`.
        use_causal_mask: If True, query t sees only the keys s ≤ t + S − T.
        return_attention_scores: If True, also return the weights, as they
            were before dropout. (Keras chose the name; the
            weights after the softmax are meant.)
        training: Whether dropout is active.

    Returns:
        Float tensor `(B, T, V)`; with `return_attention_scores`, also the
        weights `(B, T, S)`. A query with nothing to attend to gets zeros.

    Raises:
        ValueError: If `dropout` is outside [0, 1), or shapes do not match.
    """

    __signature__ = ConstructorSignature()

    def __init__(self, *, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.dropout = check_rate("dropout", dropout)
        self.dropout_layer = keras.layers.Dropout(
            dropout, dtype=self.dtype_policy
        )
        self.supports_masking = True

    def project_query(self, query):
        """The queries in the form that `score` takes."""
        return query

    def project_key(self, key):
        """The keys in the form that `score` takes."""
        return key

    def project_value(self, value):
        """The values that the weights average."""
        return value

    def score(self, query, key):
        """Scores `(B, T, S)` of projected queries and keys."""
        raise NotImplementedError

    def attend(self, query, key, value, mask=None, training=None):
        """Output and weights for projected queries, keys and values."""
        weights = masked_softmax(self.score(query, key), mask)  # (B, T, S)
        kept = drop(self.dropout_layer, weights, training)
        return ops.matmul(kept, value), weights  # (B, T, V)

    def call(
        self,
        query,
        value=None,
        *,
        key=None,
        attention_mask=None,
        query_mask=None,
        key_mask=None,
        value_mask=None,
        mask=None,
        use_causal_mask=False,
        return_attention_scores=False,
        training=None,
    ):
        if key is None and value is None:  # the queries are the keys
            key_mask = token_mask(query_mask, key_mask, mask)
        value, key = default_inputs(query, value, key)
        may_attend = merge_masks(attention_mask, key_mask, value_mask)
        if use_causal_mask:
            sizes = query_and_key_size(query, key)
            may_attend = join_causal_mask(may_attend, *sizes)
        output, weights = self.attend(
            self.project_query(query),  # what `score` takes
            self.project_key(key),
            self.project_value(value),  # (B, S, V)
            may_attend,
            training,
        )
        return (output, weights) if return_attention_scores else output

    def compute_output_shape(
        self, query_shape, value_shape=None, key_shape=None
    ):
        query, value, _ = default_shapes(query_shape, value_shape, key_shape)
        return (*query[:-1], value[-1])

    def compute_output_spec(
        self,
        query,
        value=None,
        *,
        key=None,
        return_attention_scores=False,
        **masks_and_mode,
    ):
        value, key = default_inputs(query, value, key)
        batch, t, _ = query.shape
        return output_spec(
            self,
            (batch, t, value.shape[-1]),
            (batch, t, key.shape[1]),
            return_attention_scores,
        )

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


def output_spec(layer, output_shape, weights_shape, with_weights):
    """What a layer's call returns, as tensors without values."""
    output = keras.KerasTensor(output_shape, layer.compute_dtype)
    weights = keras.KerasTensor(weights_shape, layer.compute_dtype)
    return (output, weights) if with_weights else output


def default_inputs(query, value=None, key=None):
    """Values and keys; what is missing is the other, or the queries."""
    value, key = _defaults(query, value, key)
    check_shapes(*(getattr(x, "shape", x) for x in (query, key, value)))
    return value, key


def default_shapes(query_shape, value_shape=None, key_shape=None):
    """The three shapes as tuples, in this order and by the same defaults."""
    value_shape, key_shape = _defaults(query_shape, value_shape, key_shape)
    check_shapes(query_shape, key_shape, value_shape)
    return tuple(query_shape), tuple(value_shape), tuple(key_shape)


def _defaults(query, value, key):
    if value is None:
        value = query if key is None else key
    return value, value if key is None else key


def query_and_key_size(query, key):
    """T and S, as numbers or, where unknown, as tensors."""
    return ops.shape(query)[1], ops.shape(key)[1]


def check_shapes(*shapes):
    """Refuse shapes of queries, or of queries, keys and values that misfit."""
    if not all(_has_axes(shape, 3) for shape in shapes):
        raise ValueError(
            "query, key and value must have three axes (batch, positions, "
            f"features). Received: {_named(shapes)}."
        )
    if len(shapes) == 1:
        return
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
    pairs = zip(("query", "key", "value"), shapes, strict=False)
    return ", ".join(f"{name} {shape}" for name, shape in pairs)
