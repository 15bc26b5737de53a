"""What every public attention layer must do, whatever its score."""

import itertools

from d2l_attention import AttentionBlock
from d2l_attention.layers.masking import causal_mask
import keras
from keras import ops
import numpy as np
import pytest


def _since_keras(version, limit):
    """A mark that skips a test where Keras is older than such as "3.15"."""
    installed, wanted = (
        tuple(map(int, x.split(".")[:2])) for x in (keras.__version__, version)
    )
    return pytest.mark.skipif(
        installed < wanted, reason=f"Keras before {version}: {limit}"
    )


needs_padding_mask = _since_keras(
    "3.12", "Attention and AdditiveAttention fail with a mask (B, S)"
)
needs_none_in_tuples = _since_keras(
    "3.13", "a call fails with a tuple that holds None"
)
needs_use_gate = _since_keras("3.14", "attention layers have no use_gate")
needs_sliding_window = _since_keras(
    "3.15", "attention layers have no sliding_window"
)
needs_keras_of_the_pages = _since_keras(
    "3.15", "kernels are drawn smaller, so the pages print other numbers"
)
needs_fewer_key_heads = _since_keras(
    "3.15", "on TensorFlow dot_product_attention fails with fewer key heads"
)


# Keras, too, leaves torch's models uncompiled unless it is asked.
CAN_COMPILE = keras.backend.backend() != "torch"


def on_every_backend(cases, *names):
    """A test's parameters, of which those named run on each backend.

    The others differ in what no backend does in its own way.
    """
    assert {*names} <= {*cases}
    return [
        pytest.param(
            case,
            id=name,
            marks=[pytest.mark.every_backend] if name in names else [],
        )
        for name, case in cases.items()
    ]


def to_numpy(x):
    return np.asarray(ops.convert_to_numpy(x))


def assert_same(found, expected):
    """But for rounding, in proportion to the largest number.

    torch adds in an order that depends on where its arrays lie.
    """
    found, expected = to_numpy(found), to_numpy(expected)
    largest = np.abs(expected).max(initial=0)
    assert np.isfinite(largest)
    np.testing.assert_allclose(found, expected, rtol=0, atol=5e-7 * largest)


def assert_all_close(found, expected):
    """Several tensors, but for the rounding of two ways to compute them."""
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(to_numpy(a), to_numpy(b), atol=1e-5)


_drawn = itertools.count()


def begin_to_draw(first):
    """The next call of `draw` is number `first`, whatever was drawn before."""
    global _drawn
    _drawn = itertools.count(first)


def draw(*shape, seed=None):
    """Normal numbers, float32: others at each call, unless it has a seed.

    So a key and a value of one shape differ. A test, and a module that is
    imported, begin to count anew.
    """
    own = [next(_drawn), 0] if seed is None else [seed]
    generator = np.random.default_rng([*own, *shape])
    return generator.normal(size=shape).astype("float32")


def give_to_keras(theirs, ours):
    """Assign our weights to a built attention layer of `keras.layers`.

    A gate keeps its own, since our layers have none.
    """
    names = {
        "query": "W_q",
        "key": "W_k",
        "value": "W_v",
        "attention_output": "W_o",
    }
    kept = {w.path.split("/", 1)[1]: to_numpy(w) for w in ours.weights}
    for weight in theirs.weights:
        *_, name, kind = weight.path.split("/")
        if name != "gate":
            value = kept[f"{names[name]}/{kind}"]
            weight.assign(value.reshape(weight.shape))


def dense_attention(query, key, value, mask):
    """In NumPy, of arrays `(B, T, H, K)`, `(B, S, H, K)`, `(B, S, H, V)`."""
    scores = np.einsum("bthk,bshk->bhts", query, key) / key.shape[-1] ** 0.5
    exponentials = np.where(mask, np.exp(scores), 0)
    total = exponentials.sum(-1, keepdims=True)
    weights = exponentials / np.where(total == 0, 1, total)
    return np.einsum("bhts,bshv->bthv", weights, value)


def attention_inputs(query_size=7, key_size=5, value_size=3):
    """Sizes all differ and are prime: B 2, T 11, S 13."""
    return {
        "query": draw(2, 11, query_size),
        "key": draw(2, 13, key_size),
        "value": draw(2, 13, value_size),
    }


def check_layer(
    make_layer,
    inputs,
    no_gradient=(),
    num_heads=None,
    output_dim=None,
    weights=True,
    by_position=False,
    compiles=False,
):
    """Hold a layer to the contract of the architecture.

    What Keras's own layer test asks is asked in `test_keras_citizen`.

    Args:
        make_layer: Function `(**kwargs) -> layer`, the keyword arguments
            those of `keras.Layer`.
        inputs: Dict of `query`, `key` and `value`, float32 arrays.
        no_gradient: Names of weights without influence on the output.
        num_heads: Int, number of heads H of weights `(B, H, T, S)`; None for
            weights `(B, T, S)`.
        output_dim: Int, features of the output; None = those of the value.
        weights: Whether the layer has weights to return.
        by_position: Whether it counts keys, so that one that is removed
            moves the others.
        compiles: Whether to compile it, which takes longest: one of the
            layers of a module is enough.
    """
    layer = make_layer()
    query, key, value = (inputs[x] for x in ("query", "key", "value"))
    arguments = {"key": key, "value": value}
    shape = (*query.shape[:2], key.shape[1])
    mask = np.random.default_rng(1).random(shape) < 0.6
    mask[0, 3] = False

    layer(query, **arguments)
    # Biases of 0 would hide much. That of W_o is what an empty row is left.
    for weight in layer.trainable_weights:
        if len(weight.shape) < 2 and "W_o" not in weight.path:
            weight.assign(weight + draw(*weight.shape))
    output = to_numpy(layer(query, attention_mask=mask, **arguments))
    assert (output[~mask.any(-1)] == 0).all(), "an empty row has output"
    if weights:
        _check_weights(layer, query, arguments, mask, output, num_heads or 1)
    check_masked = (
        _check_masked_is_unread if by_position else _check_masked_is_removed
    )
    check_masked(layer, query, key, value)
    _check_mask_shapes(layer, query, arguments, mask)
    _check_key_mask(layer, query, key, value)
    _check_causal(layer, query, arguments, mask)
    asked = {"return_attention_scores": True} if weights else {}
    _check_state(layer, query, arguments, asked)
    _check_gradients(layer, query, arguments, no_gradient)
    shapes = [(*query.shape[:2], output_dim or value.shape[-1])]
    if weights:
        head_axis = () if num_heads is None else (num_heads,)
        shapes.append((len(query), *head_axis, query.shape[1], key.shape[1]))
    model = _model(layer, inputs, asked)
    _check_symbolic(model, inputs, asked, shapes)
    _check_saving(model, inputs)
    _check_half_precision(make_layer, inputs, mask, asked)
    if compiles:
        _check_compiled(layer, inputs)


def _check_weights(layer, query, arguments, mask, output, num_heads):
    asked, weights = layer(
        query, attention_mask=mask, return_attention_scores=True, **arguments
    )
    assert_same(asked, output)
    weights = to_numpy(weights).reshape(len(mask), num_heads, *mask.shape[1:])
    for h in range(num_heads):
        assert (weights[:, h][~mask] == 0).all(), "a masked key has weight"
        rows = weights[:, h].sum(-1)
        np.testing.assert_allclose(rows[mask.any(-1)], 1.0, atol=1e-6)
        assert (rows[~mask.any(-1)] == 0).all(), "an empty row has weight"


def _check_masked_is_unread(layer, query, key, value):
    """Another key in its place moves neither the output nor a choice."""
    keep = np.arange(key.shape[1]) % 3 != 1
    mask = keep[None, None]
    found = to_numpy(layer(query, key=key, value=value, attention_mask=mask))
    key, value = (np.where(keep[:, None], x, -9 * x) for x in (key, value))
    other = layer(query, key=key, value=value, attention_mask=mask)
    np.testing.assert_allclose(found, to_numpy(other), rtol=1e-5, atol=1e-6)


def _check_masked_is_removed(layer, query, key, value):
    keep = np.arange(key.shape[1]) % 3 != 1
    masked = layer(query, key=key, value=value, attention_mask=keep[None, None])
    removed = layer(query, key=key[:, keep], value=value[:, keep])
    np.testing.assert_allclose(
        to_numpy(masked), to_numpy(removed), rtol=1e-5, atol=1e-6
    )


def _check_mask_shapes(layer, query, arguments, mask):
    for smaller in (mask[0], mask[:, :1]):  # (T, S) and (B, 1, S)
        short = layer(query, attention_mask=smaller, **arguments)
        full = np.broadcast_to(smaller, mask.shape)
        full = layer(query, attention_mask=full, **arguments)
        assert_same(short, full)


def _check_key_mask(layer, query, key, value):
    key_mask = np.arange(key.shape[1]) < np.array([[5], [9]])
    given = layer(query, key=key, value=value, key_mask=key_mask)
    explicit = layer(
        query, key=key, value=value, attention_mask=key_mask[:, None]
    )
    assert_same(given, explicit)
    everything = layer(query, key=key, value=value)
    assert not np.array_equal(to_numpy(given), to_numpy(everything))
    of_values = layer(query, key=key, value=value, value_mask=key_mask)
    assert_same(of_values, explicit)
    halves = np.arange(key.shape[1]) < 9, np.arange(key.shape[1]) != 3
    halves = [np.broadcast_to(half, key_mask.shape) for half in halves]
    both = layer(
        query, key=key, value=value, key_mask=halves[0], value_mask=halves[1]
    )
    joined = layer(query, key=key, value=value, key_mask=halves[0] & halves[1])
    assert_same(both, joined)
    no_query = np.zeros(query.shape[:2], "bool")
    other = layer(query, key=key, value=value, query_mask=no_query)
    assert_same(other, everything)


def _check_causal(layer, query, arguments, mask):
    """`use_causal_mask` is the mask aligned by position, and joins others."""
    past = to_numpy(causal_mask(*mask.shape[1:]))
    for more in (None, mask):
        found = layer(
            query, attention_mask=more, use_causal_mask=True, **arguments
        )
        whole = past if more is None else past & more
        expected = layer(query, attention_mask=whole, **arguments)
        np.testing.assert_allclose(
            to_numpy(found), to_numpy(expected), rtol=1e-5, atol=1e-6
        )


def _check_state(layer, query, arguments, asked):
    before = dict(vars(layer))
    layer(query, **asked, **arguments)
    layer(query, **arguments)
    after = vars(layer)
    assert before.keys() == after.keys()
    assert all(before[name] is after[name] for name in before)


def _check_gradients(layer, query, arguments, no_gradient):
    output = layer(query, **arguments)
    direction = draw(*output.shape, seed=5)
    for variable, gradient in zip(
        layer.trainable_variables,
        gradients(layer, query, arguments, direction),
        strict=True,
    ):
        gradient = to_numpy(gradient)
        assert np.isfinite(gradient).all(), variable.path
        if not variable.path.endswith(tuple(no_gradient)):
            assert np.abs(gradient).max() > 0, variable.path


def gradients(layer, query, arguments, direction):
    """Of the sum of output times direction, for each trainable variable."""
    if keras.backend.backend() == "jax":
        import jax

        def loss(trainable):
            output, _ = layer.stateless_call(
                trainable,
                [v.value for v in layer.non_trainable_variables],
                query,
                **arguments,
            )
            return ops.sum(output * direction)

        return jax.grad(loss)([v.value for v in layer.trainable_variables])
    variables = [v.value for v in layer.trainable_variables]
    if not variables:
        return []
    if keras.backend.backend() == "torch":
        import torch

        product = ops.multiply(layer(query, **arguments), direction)
        total = ops.sum(product)
        return torch.autograd.grad(total, variables, materialize_grads=True)
    import tensorflow as tf

    with tf.GradientTape() as tape:
        total = ops.sum(layer(query, **arguments) * direction)
    return tape.gradient(total, variables)


def in_a_block(layer):
    """The layer's equal in an `AttentionBlock` of 7 features."""
    config = layer.get_config() | {"output_dim": None}
    return AttentionBlock(type(layer).from_config(config), 7, 13)


def read_in_steps(block, x, steps, max_length=19):
    """The outputs of steps of these numbers of tokens."""
    if not block.built:
        block.build(x.shape)
    cache, outputs, start = block.make_cache(len(x), max_length), [], 0
    for size in steps:
        positions = np.tile(np.arange(start, start + size), (len(x), 1))
        part = x[:, start : start + size]
        y, cache = block.step(part, positions, cache)
        outputs.append(to_numpy(y))
        start += size
    return np.concatenate(outputs, axis=1)


def check_steps(layer):
    """Steps of one token and of several equal one pass over all of them."""
    block, x = in_a_block(layer), draw(2, 17, 7)
    whole = to_numpy(block(x))
    for steps in ([1] * 17, [7, 1, 1, 1, 7], [2, 12, 3]):
        found = read_in_steps(block, x, steps)
        np.testing.assert_allclose(found, whole, rtol=0, atol=1e-5)


def note_dropout(monkeypatch):
    """A list of the shapes that dropout meets in training; it drops nothing."""
    shapes = []

    def call(_, x, training=False):
        shapes.extend([tuple(x.shape)] if training else [])
        return x

    monkeypatch.setattr(keras.layers.Dropout, "call", call)
    return shapes


def in_a_graph(function, inputs):
    """What a function gives in a graph, which knows no values."""

    class Graph(keras.Model):
        def call(self, inputs):
            return function(inputs)

    model = Graph()
    model.compile(jit_compile=keras.backend.backend() == "jax")
    return model.predict_on_batch(inputs)


def compile_for_training(model, optimizer, loss, xla=False):
    """In a graph; the optimizer's variables are made at once.

    Made in the first step, they would have TensorFlow trace it twice. XLA
    takes twice as long, and is for those whose loops it might refuse.
    """
    model.compile(optimizer, loss, jit_compile=xla and CAN_COMPILE)
    model.optimizer.build(model.trainable_variables)


def input_gradients(function, *inputs):
    """Of the sum of a function of arrays, for each of them."""
    if keras.backend.backend() == "jax":
        import jax

        places = tuple(range(len(inputs)))
        found = jax.grad(lambda *x: ops.sum(function(*x)), places)(*inputs)
    elif keras.backend.backend() == "torch":
        import torch

        inputs = [torch.tensor(x, requires_grad=True) for x in inputs]
        found = torch.autograd.grad(ops.sum(function(*inputs)), inputs)
    else:
        import tensorflow as tf

        inputs = [tf.constant(x) for x in inputs]
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            total = ops.sum(function(*inputs))
        found = tape.gradient(total, inputs)
    return [to_numpy(x) for x in found]


def _model(layer, inputs, asked):
    """A functional model of unknown batch and lengths."""
    tensors = {
        name: keras.Input((None, array.shape[-1]), name=name)
        for name, array in inputs.items()
    }
    query, key, value = (tensors[x] for x in ("query", "key", "value"))
    return keras.Model(tensors, layer(query, key=key, value=value, **asked))


def _check_symbolic(model, inputs, asked, shapes):
    """The declared shapes hold, with None for batch and lengths."""
    output_shape, *weights_shapes = shapes
    unknown = [(None, None, output_shape[-1])]
    unknown += [(None, *shape[1:-2], None, None) for shape in weights_shapes]
    assert [x.shape for x in model.outputs] == unknown
    eager = model(inputs) if asked else [model(inputs)]
    assert [tuple(x.shape) for x in eager] == shapes
    for declared, real in zip(model.outputs, eager, strict=True):
        assert declared.dtype == keras.backend.standardize_dtype(real.dtype)


def _check_saving(model, inputs):
    import tempfile

    layer = type(model.layers[-1])
    registered = keras.saving.get_registered_name(layer)
    assert registered == f"d2l_attention>{layer.__name__}"
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model.keras")
        again = keras.saving.load_model(f"{folder}/model.keras")
    for found, expected in zip(
        keras.tree.flatten(again(inputs)),
        keras.tree.flatten(model(inputs)),
        strict=True,
    ):
        assert_same(found, expected)


def _check_half_precision(make_layer, inputs, mask, asked):
    for policy in ("mixed_float16", "mixed_bfloat16"):
        layer = make_layer(dtype=policy)
        outputs = layer(**inputs, attention_mask=mask, **asked)
        outputs = outputs if asked else [outputs]
        compute = policy.removeprefix("mixed_")
        for tensor in outputs:
            assert keras.backend.standardize_dtype(tensor.dtype) == compute
            assert np.isfinite(to_numpy(tensor).astype("float32")).all()
        for weights in outputs[1:]:
            weights = to_numpy(weights).astype("float32")
            per_pair = np.moveaxis(
                weights.reshape(len(mask), -1, *mask.shape[1:]), 1, 3
            )
            assert (per_pair[~mask] == 0).all()
        symbolic = _model(layer, inputs, asked)
        assert {x.dtype for x in symbolic.outputs} == {compute}


def _check_compiled(layer, inputs):
    model = _model(layer, inputs, {})
    model.compile(jit_compile=CAN_COMPILE)
    np.testing.assert_allclose(
        model.predict(inputs, verbose=0),
        to_numpy(model(inputs)),
        rtol=1e-5,
        atol=1e-6,
    )
