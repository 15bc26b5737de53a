"""What all attention layers share: masks in, one call, weights out.

A call checks here that its masks of tokens fit, before they are joined. The
equation of a layer is its `attend`.
"""

import inspect

from d2l_attention._checks import check_masks, check_tensor, differ
from d2l_attention._config import Configurable
from d2l_attention.layers.masking import merge_masks, token_mask
import keras
from keras import ops


class QueryLayer(Configurable, keras.Layer):
    """A layer that attends: it checks its call, and says what to write instead.

    Keras binds the arguments before `call`, and its message for those that do
    not fit does not say what would.
    """

    # A layer without attention weights has a sentence here that says which
    # layer or function gives them. It has no dropout, which acts on weights.
    weights_from = None

    def __init__(self, **kwargs):
        if self.weights_from and "dropout" in kwargs:
            self._refuse("dropout", kwargs["dropout"])
        super().__init__(**kwargs)
        self.supports_masking = True

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        cls._arguments = _arguments(cls.call)

    def __call__(self, *inputs, **named):
        by_position, by_name = self._arguments
        layer = type(self).__name__
        if len(inputs) > len(by_position):
            written = [*by_position, *(f"{x}=…" for x in by_name[:2])]
            raise TypeError(
                f"{layer} takes {' and '.join(by_position)} by position, and "
                f"all else by name: layer({', '.join(written)}). Received: "
                f"{len(inputs)} arguments by position."
            )
        # False is left out: under `keras.RematScope` JAX would make a tensor
        # of it, whose truth is not known.
        if not named.get("return_attention_scores", True):
            del named["return_attention_scores"]
        elif self.weights_from and "return_attention_scores" in named:
            self._refuse("return_attention_scores", True)
        known = [*by_position, *by_name]
        # `training` may always be given; Keras drops it where `call` has none.
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

    @classmethod
    def _refuse(cls, name, received):
        raise ValueError(
            f"{cls.__name__} forms no weights, to drop or to return. "
            f"{cls.weights_from} Received: {name}={received}."
        )


def _arguments(call):
    """The names that a `call` takes by position, and those by name."""
    _, *arguments = inspect.signature(call).parameters.values()  # not `self`
    by_name = [x.name for x in arguments if x.kind is x.KEYWORD_ONLY]
    return [x.name for x in arguments if x.name not in by_name], by_name


class AttentionLayer(QueryLayer):
    """The call of all layers with queries, keys and values.

    A subclass has its equation in `attend`, and the projections before it in
    `project_query`, `project_key` and `project_value`. A decoder that meets
    the same keys at every step projects them once and calls `attend`.

    Call arguments:
        query: Float tensor `(B, T, D)`.
        value: Float tensor `(B, S, D'')`; defaults to `key`.
        key: Float tensor `(B, S, D')`; defaults to `value`. Without both, the
            queries are the keys and values.
        attention_mask: Bool tensor `(T, S)`, `(B, 1, S)` or `(B, T, S)`; True
            = may attend. Two axes are read as `(T, S)`, never as `(B, S)`.
            Layers with heads also take `(B, H, T, S)`.
        key_mask: Bool tensor `(B, S)`, True at keys that exist.
        value_mask: Bool tensor `(B, S)`; it masks the keys of these values.
        query_mask, mask: Bool tensors `(B, T)`; they mask the keys where the
            queries are the keys, and change nothing otherwise. Keras fills
            `mask` or the masks of query, key and value from implicit masks,
            such as that of `Embedding(mask_zero=True)`.
        use_causal_mask: If True, query t sees only the keys s ≤ t + S − T.
        return_attention_scores: If True, also return the weights, as they
            were before dropout. (Keras chose the name; the weights after the
            softmax are meant.)
        training: Whether dropout is active.

    Returns:
        Float tensor `(B, T, V)`; with `return_attention_scores`, also the
        weights `(B, T, S)`, or `(B, H, T, S)` of layers with heads. A query
        with nothing to attend to has weights 0 and output 0.

    Raises:
        ValueError: If a size or rate is not as described, shapes do not
            match, or a mask is not boolean.
    """

    num_heads = None  # H, in layers with heads

    def project_query(self, query, start=0):
        """The queries in the form that `attend` takes.

        `start` is the position of the first one, for layers that rotate.
        """
        return query

    def project_key(self, key, start=0):
        """The keys in the form that `attend` takes; `start` as above."""
        return key

    def project_value(self, value):
        """The values that the weights average."""
        return value

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
        """Output and weights for projected queries, keys and values.

        The weights are None where a layer forms none.
        """
        raise NotImplementedError

    def attend_to_itself(
        self, x, mask=None, *, use_causal_mask=False, training=None
    ):
        """Output and weights where x `(B, T, D)` is query, key and value.

        For blocks, whose masks are joined already.
        """
        return self.attend(
            self.project_query(x),  # (B, T, H, K)
            self.project_key(x),
            self.project_value(x),
            mask,
            use_causal_mask=use_causal_mask,
            training=training,
        )

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
        # The queries are the last of the keys, as in `causal_mask`.
        start = ops.shape(key)[1] - ops.shape(query)[1]
        output, weights = self.attend(
            self.project_query(query, start),
            self.project_key(key),
            self.project_value(value),
            merge_masks(attention_mask, key_mask, value_mask),
            use_causal_mask=use_causal_mask,
            training=training,
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
        heads = () if self.num_heads is None else (self.num_heads,)
        return output_spec(
            self,
            self.compute_output_shape(query.shape, value.shape, key.shape),
            (batch, *heads, t, key.shape[1]),
            return_attention_scores,
        )


def drop(dropout_layer, x, training):
    """Dropout, if there is any, in the layer's compute dtype.

    Under `keras.RematScope` JAX traces `training`, and Keras's own layer asks
    for its value even at a rate of 0.
    """
    if dropout_layer.rate:
        return dropout_layer(x, training=training)
    return ops.cast(x, dropout_layer.compute_dtype)


def wide(dtype):
    """float32, or the dtype if that is wider."""
    return keras.backend.result_type(dtype, "float32")


def output_spec(layer, output_shape, weights_shape, with_weights):
    """What a layer's call returns, as tensors without values."""
    output = keras.KerasTensor(output_shape, layer.compute_dtype)
    weights = keras.KerasTensor(weights_shape, layer.compute_dtype)
    return (output, weights) if with_weights else output


def default_inputs(query, value=None, key=None):
    """Values and keys, where the call left some out.

    A missing one is the other; if both are missing, they are the queries.
    """
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


def check_shapes(*shapes):
    """Refuse shapes that do not fit: of queries, or of all three tensors."""
    if not all(_has_axes(shape, 3) for shape in shapes):
        raise ValueError(
            "query, key and value must have three axes (batch, positions, "
            f"features). Received: {_named(shapes)}."
        )
    if len(shapes) == 1:
        return
    query, key, value = shapes
    if differ(key[1], value[1]):
        raise ValueError(
            f"There must be one value for each key. Received: {_named(shapes)}."
        )
    if differ(query[0], key[0]) or differ(key[0], value[0]):
        raise ValueError(
            "query, key and value must have the same batch size. Received: "
            f"{_named(shapes)}."
        )


def _has_axes(shape, number):
    try:
        return len(shape) == number
    except (TypeError, ValueError):  # no tensor, or one of unknown rank
        return False


def _named(shapes):
    pairs = zip(("query", "key", "value"), shapes, strict=False)
    return ", ".join(f"{name} {shape}" for name, shape in pairs)
