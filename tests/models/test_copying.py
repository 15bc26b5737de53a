"""Copied weights give the outputs of the layers that they come from.

PyTorch's outputs come from files, those of Keras and of flash layers from the
layers themselves.
"""

from functools import partial
import json
from pathlib import Path

from contract import draw, needs_sliding_window, needs_use_gate, to_numpy
from d2l_attention import (
    ALiBiAttention,
    ContextAttention,
    FlashAttention,
    GroupedQueryAttention,
    LatentAttention,
    MultiHeadAttention,
    MultiQueryAttention,
    RotaryAttention,
    SinkAttention,
    StreamingAttention,
    T5Attention,
    TransformerDecoderBlock,
    TransformerEncoderBlock,
    WindowAttention,
)
from d2l_attention.models.copying import (
    copy_attention_layer,
    copy_decoder_layer,
    copy_encoder_layer,
    copy_with_dense_attention,
)
import keras
import numpy as np
import pytest

ORACLES = Path(__file__).parents[1] / "oracles"
CASES = [
    f"{kind}_{case}"
    for kind in ("encoder", "decoder")
    for case in (
        "post_norm_relu",
        "post_norm_gelu_no_bias",
        "pre_norm_relu_no_bias",
        "pre_norm_gelu",
    )
]
BLOCKS = {
    "encoder": (TransformerEncoderBlock, copy_encoder_layer),
    "decoder": (TransformerDecoderBlock, copy_decoder_layer),
}
WITH_BIAS = [f"{kind}_post_norm_relu" for kind in BLOCKS]
NO_BIAS = [f"{kind}_post_norm_gelu_no_bias" for kind in BLOCKS]


def load(case):
    """Options of the block, state_dict, the call, and PyTorch's output."""
    with np.load(ORACLES / f"torch_{case}.npz") as file:
        arrays = dict(file)
    options, call = (
        json.loads(str(arrays.pop(name))) for name in ("options", "call")
    )
    state_dict = {
        name.removeprefix("state_dict/"): arrays.pop(name)
        for name in list(arrays)
        if name.startswith("state_dict/")
    }
    output = arrays.pop("output")
    return options, state_dict, {**arrays, **call}, output


def make(case, **changed):
    """A block for the case, how to copy into it, and a state_dict."""
    block, copy = BLOCKS[case.split("_")[0]]
    options, state_dict, *_ = load(case)
    keras.utils.set_random_seed(0)
    return block(**{**options, **changed}), copy, state_dict


def check_refused(case, words, state_dict=None, **changed):
    """The message holds the words, in order, and no weight has changed."""
    block, copy, own = make(case, **changed)
    sizes = [(None, None, 12)] * (2 if "decoder" in case else 1)
    block.build(*sizes)
    before = block.get_weights()
    with pytest.raises(ValueError, match=words):
        copy(block, own if state_dict is None else state_dict)
    for old, new in zip(before, block.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("case", CASES)
def test_the_output_is_that_of_torch(case):
    block, copy, state_dict = make(case)
    _, _, call, expected = load(case)
    copy(block, state_dict)
    found = to_numpy(block(**call))
    # Every row is compared: none has all its keys masked.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_every_file_is_tested():
    files = {path.stem for path in ORACLES.glob("torch_*.npz")}
    assert files == {f"torch_{case}" for case in CASES}


def approximate_gelu(x):
    return keras.activations.gelu(x, approximate=True)


@pytest.mark.parametrize(
    "case", ["encoder_pre_norm_gelu", "decoder_pre_norm_gelu"]
)
def test_what_the_state_dict_does_not_tell_matters(case):
    for changed in (
        {"activation": approximate_gelu},  # ours and PyTorch's are exact
        {"epsilon": 1e-5},
        {"normalize_first": False},
        {"num_heads": 2},
    ):
        block, copy, state_dict = make(case, **changed)
        _, _, call, expected = load(case)
        copy(block, state_dict)
        found = to_numpy(block(**call))
        assert np.abs(found - expected).max() > 1e-4, changed


@pytest.mark.parametrize("case", WITH_BIAS + NO_BIAS)
def test_no_weight_keeps_its_old_value(case):
    block, copy, state_dict = make(case)
    copy(block, state_dict)
    block.set_weights([draw(*x.shape) for x in block.get_weights()])
    before = block.get_weights()
    copy(block, state_dict)  # into a block that is built
    for weight, old in zip(block.weights, before, strict=True):
        assert (to_numpy(weight) != old).all(), weight.path
        if weight.path.endswith(("beta", "bias")) and not block.use_bias:
            assert (to_numpy(weight) == 0).all(), weight.path


def test_lists_and_other_precisions_are_arrays_too():
    block, copy, state_dict = make("encoder_post_norm_relu")
    copy(block, state_dict)
    expected = block.get_weights()
    for convert in (np.ndarray.tolist, np.float64):
        again, *_ = make("encoder_post_norm_relu")
        copy(again, {name: convert(x) for name, x in state_dict.items()})
        for old, new in zip(expected, again.get_weights(), strict=True):
            np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("case", WITH_BIAS)
def test_names_that_do_not_fit_are_named(case):
    _, _, state_dict = make(case)
    layer = "Encoder" if "encoder" in case else "Decoder"
    array = state_dict.pop("linear2.bias")
    words = rf"{layer}Layer.*missing \['linear2.bias'\], unexpected \[\]"
    check_refused(case, words, state_dict)
    state_dict |= {"linear2.bias": array, "linear3.weight": array}
    words = r"missing \[\], unexpected \['linear3.weight'\]"
    check_refused(case, words, state_dict)
    prefixed = {f"layers.0.{name}": x for name, x in state_dict.items()}
    check_refused(case, r"unexpected \['layers.0.linear1.bias'", prefixed)


@pytest.mark.parametrize("case", CASES)
def test_shapes_that_do_not_fit_are_named(case):
    _, _, state_dict = make(case)
    words = (
        r"linear1.weight of shape \(20, 12\), wanted \(19, 12\).*"
        r"linear2.weight of shape \(12, 20\), wanted \(12, 19\)"
    )
    check_refused(case, words, ffn_dim=19)
    kernel = state_dict["linear2.weight"]
    words = r"linear2.weight of shape \(20, 12\), wanted \(12, 20\)"
    check_refused(case, words, {**state_dict, "linear2.weight": kernel.T})


@pytest.mark.parametrize("case", WITH_BIAS)
def test_what_is_no_array_of_numbers_is_named(case):
    _, _, state_dict = make(case)
    words = "linear2.bias, a str: could not convert string to float: 'b_2'"
    check_refused(case, words, {**state_dict, "linear2.bias": "b_2"})


@pytest.mark.parametrize("case", WITH_BIAS)
def test_biases_are_on_both_sides_or_on_none(case):
    words = r"use_bias=False .* bias=False. .*biases \['linear1.bias', "
    check_refused(case, words, use_bias=False)


@pytest.mark.parametrize("case", NO_BIAS)
def test_biases_that_are_not_there_are_missed(case):
    words = r"use_bias=True .* bias=True. Received: biases \[\]"
    check_refused(case, words, use_bias=True)


def test_each_function_wants_its_own_block():
    encoder, copy_encoder, state_dict = make("encoder_post_norm_relu")
    decoder, copy_decoder, _ = make("decoder_post_norm_relu")
    with pytest.raises(ValueError, match="EncoderBlock.*DecoderBlock"):
        copy_encoder(decoder, state_dict)
    with pytest.raises(ValueError, match="DecoderBlock.*EncoderBlock"):
        copy_decoder(encoder, state_dict)
    with pytest.raises(ValueError, match="EncoderBlock.*Received: Dense"):
        copy_encoder(keras.layers.Dense(12), state_dict)


def test_keys_of_another_size_are_refused():
    block, copy, state_dict = make("decoder_post_norm_relu")
    block.build((None, None, 12), (None, None, 7))
    words = r"\(12, 12\), \(7, 12\), \(7, 12\)"
    with pytest.raises(ValueError, match=words):
        copy(block, state_dict)


# Keras's layers


INPUTS = (2, 5, 13), (2, 7, 11), (2, 7, 6)  # query, value, key
LARGE = {"num_heads": 3, "key_dim": 5, "value_dim": 2}
GROUPED = {"head_dim": 5, "num_query_heads": 6}
PAIRS = {  # ours, then that of Keras
    "multi_head": (
        lambda bias: MultiHeadAttention(**LARGE, use_bias=bias),
        lambda bias: keras.layers.MultiHeadAttention(**LARGE, use_bias=bias),
    ),
    "output_dim": (
        lambda bias: MultiHeadAttention(3, 5, output_dim=4, use_bias=bias),
        lambda bias: keras.layers.MultiHeadAttention(
            3, 5, output_shape=4, use_bias=bias
        ),
    ),
    "flash": (
        lambda bias: FlashAttention(**LARGE, use_bias=bias),
        lambda bias: keras.layers.MultiHeadAttention(**LARGE, use_bias=bias),
    ),
    "grouped": (
        lambda bias: GroupedQueryAttention(6, 2, 5, use_bias=bias),
        lambda bias: keras.layers.GroupQueryAttention(
            num_key_value_heads=2, **GROUPED, use_bias=bias
        ),
    ),
    "multi_query": (
        lambda bias: MultiQueryAttention(6, 5, use_bias=bias),
        lambda bias: keras.layers.GroupQueryAttention(
            num_key_value_heads=1, **GROUPED, use_bias=bias
        ),
    ),
}
KERAS = PAIRS["multi_head"][1]


def build(layer):
    """The layer with drawn weights: at 0 an exchange would not show."""
    layer.build(*((None, None, shape[-1]) for shape in INPUTS))
    for i, weight in enumerate(layer.weights):
        weight.assign(0.3 * draw(*weight.shape, seed=i))
    return layer


def attend(layer, **masks):
    query, value, key = (draw(*shape, seed=i) for i, shape in enumerate(INPUTS))
    if isinstance(layer, FlashAttention):
        return to_numpy(layer(query, value, key=key, **masks))
    masks["return_attention_scores"] = True  # or Keras wants V = K on JAX
    return to_numpy(layer(query, value, key=key, **masks)[0])


def check_not_copied(layer, source, words):
    """The message holds the words, in order, and no weight has changed."""
    before = layer.get_weights() if layer.built else None
    with pytest.raises(ValueError, match=words):
        copy_attention_layer(layer, source)
    assert layer.built == (before is not None)
    for old, new in zip(before or [], layer.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("pair", PAIRS)
def test_attention_of_keras_goes_there_and_back(pair, bias):
    make_ours, make_theirs = PAIRS[pair]
    theirs, ours, again = (
        build(make_theirs(bias)),
        make_ours(bias),
        make_theirs(bias),
    )
    copy_attention_layer(ours, theirs)
    mask = np.random.default_rng(1).random((2, 5, 7)) < 0.7
    mask[:, :, 0] = True  # Keras has no zeros for empty rows
    for masks in ({}, {"attention_mask": mask}):
        np.testing.assert_allclose(
            attend(ours, **masks), attend(theirs, **masks), rtol=0, atol=2e-6
        )
    copy_attention_layer(again, ours)
    for old, new in zip(theirs.weights, again.weights, strict=True):
        np.testing.assert_array_equal(to_numpy(old), to_numpy(new))


@pytest.mark.every_backend
def test_a_built_layer_takes_weights_in_its_own_dtype():
    theirs = build(KERAS(True))
    for dtype in ("float32", "mixed_float16", "float16"):
        ours = MultiHeadAttention(**LARGE, use_bias=True, dtype=dtype)
        copy_attention_layer(build(ours), theirs)
        for old, new in zip(theirs.weights, ours.weights, strict=True):
            expected = to_numpy(old).astype(ours.variable_dtype)
            np.testing.assert_array_equal(
                to_numpy(new), expected.reshape(new.shape)
            )


@pytest.mark.parametrize("is_built", [False, True])
def test_sizes_that_differ_are_named(is_built):
    source = build(KERAS(False))
    for arguments, words in {
        # The kernels have the same sizes: 3 heads of 5, or 5 of 3.
        (5, 3, 2): "num_heads 5, wanted 3; .*key_dim 3, wanted 5",
        (3, 5, 5): "value_dim 5, wanted 2",
        (3, 5, 2, 7): "output_dim 7, wanted 13",
        (3, 5, 2, None, True): "use_bias True, wanted False",
    }.items():
        names = "num_heads", "key_dim", "value_dim", "output_dim", "use_bias"
        sizes = dict(zip(names, arguments, strict=False))
        layer = MultiHeadAttention(**sizes)
        check_not_copied(build(layer) if is_built else layer, source, words)
    grouped = GroupedQueryAttention(3, 1, 5, value_dim=2)
    check_not_copied(grouped, source, r"num_kv_heads 1, wanted 3\.")


def test_features_that_differ_are_named():
    source, layer = build(KERAS(False)), MultiHeadAttention(**LARGE)
    layer.build((None, None, 13), (None, None, 11), (None, None, 11))
    words = r"key\) \(13, 11, 11\), wanted \(13, 11, 6\)\."
    check_not_copied(layer, source, words)


def test_what_is_no_built_attention_layer_is_refused():
    layer = MultiHeadAttention(**LARGE)
    words = r"call it first\. Received: 'multi_head_attention\w*', not built"
    check_not_copied(layer, KERAS(False), words)
    check_not_copied(layer, keras.layers.Dense(3), "`source` .*: Dense")


@pytest.mark.parametrize(
    "make",
    [
        ContextAttention,  # its queries meet a context
        RotaryAttention,
        ALiBiAttention,
        T5Attention,
        partial(WindowAttention, window=3),
        SinkAttention,
        partial(StreamingAttention, window=3),
        partial(LatentAttention, latent_dim=5, rotary_dim=2),
    ],
)
def test_what_does_more_than_plain_attention_is_refused(make):
    """Its weights would fit, and what it does with them would be lost."""
    sizes = LARGE | {"key_dim": 6}  # which can be rotated
    layer = make(**sizes)
    plain = build(keras.layers.MultiHeadAttention(**sizes, use_bias=False))
    words = f"must be .*keras.layers.MultiHead.*: {type(layer).__name__}"
    check_not_copied(layer, plain, f"`layer` {words}")
    check_not_copied(plain, layer, f"`source` {words}")


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"use_gate": True}, marks=needs_use_gate),
        pytest.param({"sliding_window": 3}, marks=needs_sliding_window),
        {"attention_axes": (2,)},
        {"output_shape": (2, 3)},
    ],
    ids=str,
)
def test_what_only_keras_has_is_refused(arguments):
    theirs = keras.layers.MultiHeadAttention(3, 5, **arguments)
    rank = 4 if "attention_axes" in arguments else 3
    theirs.build((2,) * rank, (2,) * rank)
    (name,) = arguments
    words = f"Received: `source` with .*{name}"
    check_not_copied(MultiHeadAttention(3, 5), theirs, words)
    words = words.replace("source", "layer")
    check_not_copied(theirs, build(MultiHeadAttention(3, 5)), words)


def test_weights_besides_kernels_are_refused():
    source, layer = build(KERAS(False)), build(MultiHeadAttention(**LARGE))
    layer.query_layer.enable_lora(rank=2)
    check_not_copied(layer, source, "no other weights.*W_q/lora_kernel_a")


# Flash layers


@keras.saving.register_keras_serializable("tests")
class Holder(keras.Layer):
    """It holds an attention layer, which it is given or makes."""

    def __init__(self, attention=None, **kwargs):
        super().__init__(**kwargs)
        self.given = attention
        self.attention = attention or FlashAttention(2, 3)

    def call(self, x):
        return self.attention(x)

    def get_config(self):
        attention = keras.saving.serialize_keras_object(self.given)
        return {**super().get_config(), "attention": attention}

    @classmethod
    def from_config(cls, config):
        attention = keras.saving.deserialize_keras_object(config["attention"])
        return cls(**{**config, "attention": attention})


class Unregistered(Holder):
    """Keras finds this class by no name."""


def functional_model():
    """Submodels that share an embedding, cross-attention, a wrapper."""
    embedding = keras.layers.Embedding(9, 6, mask_zero=True)
    ids = keras.Input((None,), dtype="int32")
    encoded = FlashAttention(2, 3, value_dim=5)(embedding(ids))
    decoded = FlashAttention(2, 3)(embedding(ids), use_causal_mask=True)
    encoder, decoder = keras.Model(ids, encoded), keras.Model(ids, decoded)
    source, target = (keras.Input((None,), dtype="int32") for _ in range(2))
    cross = FlashAttention(3, 2, use_bias=True, output_dim=4, block_size=2)
    x = cross(decoder(target), encoder(source))
    x = keras.layers.TimeDistributed(FlashAttention(2, 5))(x[:, None])
    return keras.Model([source, target], x)


def sequential(*layers):
    return keras.Sequential([keras.Input((None, 6)), *layers])


def flash(**arguments):
    return FlashAttention(2, 3, value_dim=5, use_bias=True, **arguments)


def called(layer):
    layer(draw(2, 5, 6))
    return layer


MODELS = {
    "functional": functional_model,
    "sequential": lambda: sequential(flash(), keras.layers.Dense(4)),
    "built by a call": lambda: called(keras.Sequential([flash()])),
    "in half precision": lambda: sequential(flash(dtype="mixed_float16")),
    "held": lambda: sequential(Holder(flash()), flash()),
    "held by a class of no name": lambda: sequential(Unregistered(flash())),
    "a layer": lambda: called(flash()),
    "a layer that holds one": lambda: called(Holder(flash())),
}


def check_no_copy(model, words):
    with pytest.raises(ValueError, match=words):
        copy_with_dense_attention(model)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())
def test_a_model_with_dense_attention_is_the_same(make):
    model = make()
    for i, weight in enumerate(model.weights):
        weight.assign(draw(*weight.shape, seed=i))
    inputs = draw(2, 5, 6)
    if make is functional_model:
        inputs = [np.array([[1, 2, 3, 0, 0], [4, 5, 6, 7, 8]])] * 2
    before = to_numpy(model(inputs))
    dense = copy_with_dense_attention(model)
    copied = to_numpy(dense(inputs))
    tolerance = 1e-2 if copied.dtype == "float16" else 1e-5
    np.testing.assert_allclose(
        copied, before, rtol=tolerance, atol=tolerance * np.abs(before).max()
    )
    assert type(dense).__name__ in (type(model).__name__, "MultiHeadAttention")
    assert dense.name == model.name
    for old, new in zip(model.weights, dense.weights, strict=True):
        assert old.dtype == new.dtype
        np.testing.assert_array_equal(to_numpy(old), to_numpy(new))
        new.assign(np.zeros(new.shape))
    np.testing.assert_array_equal(to_numpy(model(inputs)), before)


@pytest.mark.every_backend
def test_a_dense_copy_shows_the_weights_under_the_names_of_its_layers():
    model = sequential(flash(name="first"), flash(name="second"))
    dense = copy_with_dense_attention(model)
    inputs = x = draw(2, 5, 6)
    for name in ("first", "second"):
        x, weights = dense.get_layer(name)(x, return_attention_scores=True)
        assert weights.shape == (2, 2, 5, 5)
    np.testing.assert_allclose(to_numpy(x), to_numpy(model(inputs)), atol=1e-6)


def test_a_compiled_model_has_a_compiled_copy():
    model = sequential(flash())
    model.compile("sgd", "mse")
    optimizer = copy_with_dense_attention(model).optimizer
    assert isinstance(optimizer, keras.optimizers.SGD)


def test_what_holds_no_flash_layer_or_no_weights_is_refused():
    words = "hold a FlashAttention.*Sequential 'plain', which holds none"
    dense = [keras.Input((4,)), keras.layers.Dense(3)]
    check_no_copy(keras.Sequential(dense, name="plain"), words)
    unbuilt = keras.Sequential([flash()], name="unbuilt")
    check_no_copy(unbuilt, "call it first. Received: 'unbuilt', not built")


def test_a_flash_layer_that_no_config_holds_is_named():
    words = "Holder 'maker', whose copy still holds FlashAttention 'flash_"
    check_no_copy(sequential(Holder(name="maker")), words)


def test_a_layer_that_cannot_be_made_again_is_named():
    double = keras.layers.Lambda(lambda x: 2 * x, name="double")
    words = "(?s)Received: Lambda 'double', where this fails: .*lambda"
    check_no_copy(sequential(double, flash()), words)


def test_a_layer_with_other_weights_when_it_is_made_again_is_named():
    layer = flash(name="tuned")
    model = sequential(layer)
    layer.query_layer.enable_lora(rank=2)
    words = r"FlashAttention 'tuned' .*shapes \[.*\(6, 2\), \(2, 6\).*LoRA"
    check_no_copy(model, words)
