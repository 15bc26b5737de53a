"""No mask is lost, whatever other tensors a call has.

Padding is embedded by `Embedding(mask_zero=True)`; only the vector of the
padding changes, and no output of a real token may move. The calls are made
from the signature of each layer's `call`: the implicit mask alone, beside
each other tensor, and beside all of them.
"""

import inspect

from contract import draw, to_numpy
from every_layer import (
    ALWAYS_CAUSAL,
    CONTEXT,
    DECODERS,
    OWN_PATTERN,
    POSITION_WISE,
    SELF_ATTENTION,
    make,
    on_every_backend,
    public_layers,
)
import keras
from keras import ops
from keras.src.backend.common.masking import get_keras_mask
import numpy as np
import pytest

IDS = np.array([[3, 1, 4, 0, 0], [2, 5, 6, 1, 0]], "int32")
REAL = IDS != 0
EVERYONE = np.ones((2, 5), "bool")
NO_TENSOR = {
    "mask",  # what Keras fills, and the test is about
    "query_mask",
    "value_mask",
    "context_mask",
    "return_attention_scores",
    "training",
    "use_causal_mask",
}
# The embedded tokens h carry the mask; h * 1.0 has lost it.
TENSORS = {
    "attention_mask": lambda h: ops.convert_to_tensor(np.ones((5, 5), "bool")),
    "cross_attention_mask": lambda h: ops.convert_to_tensor(
        np.ones((5, 5), "bool")
    ),
    "context": lambda h: h,
    "global_positions": lambda h: ops.convert_to_tensor(
        np.array([0, 2], "int32")
    ),
    "key": lambda h: h,
    "key_mask": lambda h: ops.convert_to_tensor(EVERYONE),
    "start": lambda h: ops.convert_to_tensor(np.array([1, 2], "int32")),
    "value": lambda h: h,
}
SAME_FOR_ALL_QUERIES = {"LinformerAttention", "PerformerAttention"}
REQUIRED = {"context", "key"}  # where `call` gives them no default


@pytest.fixture(autouse=True)
def the_same_weights_each_time():
    keras.utils.set_random_seed(0)


def calls(name):
    """Names of the tensors beside the first one, call by call."""
    first, *rest = inspect.signature(public_layers()[name].call).parameters
    rest = [x for x in rest if x not in {"self", *NO_TENSOR}]
    if first == "self":
        rest = rest[1:]
    unknown = {*rest} - {*TENSORS}
    assert not unknown, f"{name}.call has tensors without a case: {unknown}"
    needed = [x for x in rest if x in REQUIRED and name in DECODERS | CONTEXT]
    found = [needed, *([*needed, x] for x in rest if x not in needed), rest]
    return sorted({tuple(sorted(x)) for x in found}, key=len)


EMBEDDING = keras.layers.Embedding(7, 4, mask_zero=True)
EMBEDDING.build((None, None))


def directly(run):
    """A function of ids, as in a call of a subclassed model."""
    return lambda ids: run(EMBEDDING(ids))


def functional(run):
    ids = keras.Input((5,), dtype="int32")
    return keras.Model(ids, run(EMBEDDING(ids)))


def moved(model):
    """How far outputs of real tokens move with the padding's vector."""
    outputs = []
    for vector in (np.zeros(4), np.array([5.0, -3.0, 8.0, 2.0])):
        values = np.random.default_rng(0).normal(size=(7, 4))
        values[0] = vector
        EMBEDDING.embeddings.assign(values.astype("float32"))
        output = to_numpy(model(IDS))
        of_tokens = output.shape[:2] == REAL.shape  # and not pooled
        outputs.append(output[REAL] if of_tokens else output)
    first, second = outputs
    assert np.isfinite(first).all()
    assert np.abs(first).max() > 0
    return np.abs(first - second).max()


@pytest.mark.parametrize(
    "name",
    on_every_backend(
        [
            *SELF_ATTENTION,
            *OWN_PATTERN,
            *DECODERS,
            *CONTEXT,
            *POSITION_WISE,
        ]
    ),
)
def test_padding_moves_no_real_token(name):
    """Whichever tensors a call has; a functional model is given them all."""
    layer, ways = make(name), calls(name)
    for tensors, make_model in (
        *((tensors, directly) for tensors in ways),
        (ways[-1], functional),
    ):

        def run(h, tensors=tensors):
            given = {x: TENSORS[x](h) for x in tensors}
            if "key" in given and "key_mask" in given:  # it replaces `key`'s
                given["key_mask"] = ops.convert_to_tensor(REAL)
            if name in SAME_FOR_ALL_QUERIES and "attention_mask" in given:
                given["attention_mask"] = given["attention_mask"][:1]
            return layer(h, **given)

        assert moved(make_model(run)) == 0.0, tensors


@pytest.mark.parametrize("name", SELF_ATTENTION)
def test_a_mask_of_the_keys_or_of_the_values_is_enough(name):
    layer = make(name)
    for masked in ("key", "value"):

        def run(h, masked=masked):
            tensors = {"key": h * 1.0, "value": h * 1.0, masked: h}
            return layer(h * 1.0, **tensors)

        for make_model in (directly, functional):
            assert moved(make_model(run)) == 0.0, masked


@pytest.mark.parametrize(
    ("name", "tensor"),
    on_every_backend(
        [("ContextAttention", "context"), *((x, "key") for x in DECODERS)]
    ),
)
def test_the_mask_of_the_other_tensor_is_enough(name, tensor):
    layer = make(name)
    for make_model in (directly, functional):
        model = make_model(lambda h: layer(h * 1.0, **{tensor: h}))
        assert moved(model) == 0.0


@pytest.mark.parametrize("name", [*SELF_ATTENTION, *OWN_PATTERN])
def test_the_test_would_see_a_lost_mask(name):
    """Without any mask the padding's vector moves the real tokens."""
    layer = make(name)
    how_far = moved(directly(lambda h: layer(h * 1.0)))
    if name in ALWAYS_CAUSAL:  # padding stands behind all that see it
        assert how_far == 0.0
    else:
        assert how_far > 0.01


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in [*SELF_ATTENTION, *OWN_PATTERN]
        if name != "LinformerAttention"  # it has no causal form
        and {"use_causal_mask", "key_mask"}
        <= {*inspect.signature(public_layers()[name].call).parameters}
    ],
)
def test_the_causal_mask_joins_that_of_the_keys(name):
    """A hole between tokens, which the causal mask does not hide."""
    layer, x = make(name), draw(2, 5, 4)
    there = np.tile(np.arange(5) != 1, (2, 1))
    first, second = (
        to_numpy(layer(h, key_mask=there, use_causal_mask=True))[there]
        for h in (x, np.where(there[..., None], x, -3 * x))
    )
    np.testing.assert_allclose(first, second, atol=1e-6)


@pytest.mark.parametrize("name", [*SELF_ATTENTION, *OWN_PATTERN, *DECODERS])
def test_the_mask_goes_on_to_the_next_layer(name):
    layer, h = make(name), EMBEDDING(IDS)
    output = layer(h, **({"key": h} if name in DECODERS else {}))
    np.testing.assert_array_equal(to_numpy(get_keras_mask(output)), REAL)
