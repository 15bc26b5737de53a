"""Positions as vectors: the formula, and where decoding stands."""

from contract import CAN_COMPILE, draw, in_a_graph, to_numpy
from d2l_attention import (
    LearnedPositionalEncoding,
    PositionalEncoding,
    sinusoidal_encoding,
)
import keras
import numpy as np
import pytest

ENCODINGS = [PositionalEncoding, LearnedPositionalEncoding]


@pytest.mark.parametrize("dim", [6, 7])
def test_the_formula_entry_by_entry(dim):
    table = sinusoidal_encoding(11, dim)
    assert table.shape == (11, dim) and table.dtype == np.float32
    for t in range(11):
        for i in range(dim):
            angle = t / 10000 ** (2 * (i // 2) / dim)
            wave = np.cos(angle) if i % 2 else np.sin(angle)
            assert abs(table[t, i] - wave) < 1e-6


@pytest.mark.parametrize("offset", [1, 3, 8])
def test_a_shift_is_one_rotation_for_all_positions(offset):
    table = sinusoidal_encoding(50, 8)
    rotation = np.zeros((8, 8))
    for j in range(4):
        angle = offset / 10000 ** (2 * j / 8)
        c, s = np.cos(angle), np.sin(angle)
        rotation[2 * j : 2 * j + 2, 2 * j : 2 * j + 2] = [[c, s], [-s, c]]
    np.testing.assert_allclose(
        table[:-offset] @ rotation.T, table[offset:], atol=1e-5
    )


@pytest.mark.every_backend
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_one_token_at_a_time_equals_all_at_once(encoding):
    x = draw(2, 11, 7)
    layer = encoding(max_length=13)
    whole = to_numpy(layer(x))
    # A position that is forgotten would add the same vector everywhere.
    assert not np.allclose(whole[0, 0] - x[0, 0], whole[0, 1] - x[0, 1])
    for t in range(11):
        for start in (t, keras.ops.convert_to_tensor(t, "int32")):
            one = layer(x[:, t : t + 1], start=start)
            np.testing.assert_array_equal(to_numpy(one)[:, 0], whole[:, t])


@pytest.mark.every_backend
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_sentences_may_begin_at_positions_of_their_own(encoding):
    x = np.repeat(draw(1, 3, 4), 3, axis=0)
    layer = encoding(max_length=9)
    starts = np.array([2, 5, -1])  # NumPy's ints are of 64 bits
    found = to_numpy(layer(x, start=starts))
    for i in (0, 1):
        alone = layer(x[:1], start=int(starts[i]))
        np.testing.assert_array_equal(found[i], to_numpy(alone)[0])
    first = to_numpy(layer(x[:1, :1]))[0, 0]
    np.testing.assert_allclose(found[2, 0], first, atol=1e-6)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_tokens_beyond_the_positions_are_refused(encoding):
    layer = encoding(max_length=5)
    layer(draw(2, 5, 4))
    with pytest.raises(ValueError, match="5 positions.*positions 0 … 5"):
        layer(draw(2, 6, 4))
    with pytest.raises(ValueError, match="positions 4 … 5"):
        layer(draw(2, 2, 4), start=4)
    with pytest.raises(ValueError, match="positions -1 … 0"):
        layer(draw(2, 2, 4), start=-1)
    with pytest.raises(ValueError, match="positions 0 … 5"):
        layer(draw(2, 3, 4), start=np.array([0, 3]))
    if CAN_COMPILE:  # in a graph only those become NaN
        starts = np.array([0, 3])
        found = in_a_graph(lambda x: layer(x, start=starts), draw(2, 3, 4))
        beyond = np.arange(3) + starts[:, None] >= 5
        assert (np.isnan(found).all(-1) == beyond).all()
        assert (np.isnan(found).any(-1) == beyond).all()
    with pytest.raises(ValueError, match="max_length=0"):
        encoding(max_length=0)


@pytest.mark.every_backend
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_saving_unknown_lengths_and_half_precision(encoding, tmp_path):
    inputs = keras.Input((None, 6))
    model = keras.Model(inputs, encoding(max_length=17)(inputs))
    x = draw(2, 9, 6)
    expected = encoding(max_length=17)
    expected.build((None, None, 6))
    expected.set_weights(model.get_weights())
    np.testing.assert_array_equal(to_numpy(model(x)), to_numpy(expected(x)))
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(to_numpy(model(x)), to_numpy(again(x)))
    again.compile(jit_compile=False)
    in_graph = again.predict(x, verbose=0)  # of an unknown length, too
    np.testing.assert_allclose(in_graph, to_numpy(expected(x)), atol=1e-6)
    half = encoding(max_length=17, dtype="mixed_float16")(x)
    assert keras.backend.standardize_dtype(half.dtype) == "float16"


def test_only_the_learned_one_has_weights():
    counts = []
    for encoding in ENCODINGS:
        layer = encoding(max_length=5)
        layer.build((None, None, 3))
        counts.append(layer.count_params())
    assert counts == [0, 15]
