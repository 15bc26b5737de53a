"""Weights of PyTorch's layers give PyTorch's outputs, from files."""

import json
from pathlib import Path

from contract import draw, to_numpy
from d2l_attention import TransformerDecoderBlock, TransformerEncoderBlock
from d2l_attention.models.parameters import (
    copy_decoder_layer,
    copy_encoder_layer,
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
