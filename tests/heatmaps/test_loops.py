"""Attention inside loops: its steps are joined, or the model is asked."""

from contract import draw, to_numpy
from d2l_attention import BahdanauSeq2Seq, RNNSearch
from d2l_attention.heatmaps import get_attention_weights
import keras
from keras import layers, ops
import numpy as np
import pytest
from zoo import Selves, known

X = draw(2, 5, 8)
IS_TENSORFLOW = keras.backend.backend() == "tensorflow"
IS_JAX = keras.backend.backend() == "jax"


class Cell(keras.Layer):
    """A cell that looks at a memory that it made from nothing but its input."""

    state_size = output_size = 8

    def __init__(self, **options):
        super().__init__(**options)
        self.attention = known("attention")

    def build(self, shape):
        memory = (1, 5, 8)
        self.memory = self.add_weight(shape=memory, initializer="normal")
        self.attention.build((None, 1, 8), memory)

    def call(self, x, states):
        memory = ops.repeat(self.memory, ops.shape(x)[0], axis=0)
        y = self.attention((x + states[0])[:, None], memory)[:, 0]
        return y, [y]


@pytest.mark.every_backend
@pytest.mark.skipif(IS_JAX, reason="JAX traces its loops")
def test_the_steps_of_a_recurrent_layer_are_the_rows_of_one_map():
    model = keras.Sequential([layers.RNN(Cell(name="cell"), name="rnn")])
    outputs, maps = get_attention_weights(model, X)
    assert {path: w.shape for path, w in maps.items()} == {
        "rnn/cell/attention": (2, 2, 5, 5)
    }
    cell, state = model.layers[0].cell, np.zeros((2, 8), "float32")
    memory = np.repeat(to_numpy(cell.memory), 2, 0)
    for t in range(5):
        y, weights = cell.attention(
            (X[:, t] + state)[:, None], memory, return_attention_scores=True
        )
        state = to_numpy(y)[:, 0]
        np.testing.assert_allclose(
            maps["rnn/cell/attention"][:, :, [t]], to_numpy(weights), atol=1e-6
        )
    np.testing.assert_allclose(to_numpy(outputs), state, atol=1e-6)


class Twice(keras.Layer):
    """A cell that looks twice at a memory: at what it read first, again."""

    state_size = output_size = 8

    def __init__(self, **options):
        super().__init__(**options)
        self.attention = known("attention")

    def build(self, shape):
        self.memory = self.add_weight(shape=(1, 5, 8), initializer="normal")
        self.attention.build((None, 1, 8), (1, 5, 8))

    def call(self, x, states):
        memory = ops.repeat(self.memory, ops.shape(x)[0], axis=0)
        first = self.attention((x + states[0])[:, None], memory)
        y = self.attention(first, memory)[:, 0]
        return y, [y]


@pytest.mark.skipif(not IS_TENSORFLOW, reason="JAX traces its loops")
@pytest.mark.parametrize("backwards", [False, True])
def test_calls_within_a_step_are_maps_in_the_order_of_the_inputs(backwards):
    rnn = layers.RNN(Twice(name="cell"), go_backwards=backwards, name="rnn")
    _, maps = get_attention_weights(rnn, sequences=X)
    paths = ["cell/attention", "cell/attention#2"]
    assert list(maps) == paths
    cell, state = rnn.cell, np.zeros((2, 8), "float32")
    memory = np.repeat(to_numpy(cell.memory), 2, 0)
    for t in reversed(range(5)) if backwards else range(5):
        query = (X[:, t] + state)[:, None]
        for path in paths:
            query, weights = cell.attention(
                query, memory, return_attention_scores=True
            )
            np.testing.assert_allclose(
                maps[path][:, :, [t]], to_numpy(weights), atol=1e-6
            )
        state = to_numpy(query)[:, 0]


@pytest.mark.every_backend
@pytest.mark.skipif(
    not (IS_TENSORFLOW or IS_JAX), reason="torch's loops are Python's"
)
def test_attention_in_a_loop_of_the_graph_is_named():
    rnn = layers.RNN(Cell(name="cell"), return_sequences=True, name="rnn")
    model = keras.Sequential([rnn, Selves(name="self")])

    def ask():
        outputs, maps = get_attention_weights(model, X)
        return outputs, dict(maps), maps.skipped

    if IS_TENSORFLOW:
        import tensorflow as tf

        model(X)
        found = []
        traced = tf.function(lambda: found.append(ask()) or found[-1][:2])
        with pytest.warns(UserWarning, match="rnn/cell/attention: .*a loop"):
            _, maps = traced()
        ((_, _, skipped),) = found
    else:
        with pytest.warns(UserWarning, match="rnn/cell/attention: .*a loop"):
            _, maps, skipped = ask()
    assert list(maps) == ["self/attention"]
    assert list(skipped) == ["rnn/cell/attention"]


IDS = np.array([[5, 3, 9, 2, 0, 0], [7, 1, 4, 8, 6, 2]], "int32")


@pytest.mark.every_backend
@pytest.mark.parametrize("mode", ["eager", "graph"])
@pytest.mark.parametrize("kind", [BahdanauSeq2Seq, RNNSearch])
def test_a_model_with_a_loop_of_its_own_is_asked(kind, mode):
    model = kind(11, 13, dim=8, num_layers=1)
    inputs = {"source": IDS, "target": IDS[:, :3]}
    expected, weights = model(inputs, return_attention_scores=True)

    def ask():
        outputs, maps = get_attention_weights(model, inputs)
        return outputs, dict(maps)

    if mode == "graph":
        if not IS_TENSORFLOW:
            pytest.skip("tf.function")
        import tensorflow as tf

        ask = tf.function(ask)
    outputs, maps = ask()
    np.testing.assert_allclose(to_numpy(outputs), to_numpy(expected), atol=1e-6)
    assert list(maps) == ["decoder/attention"]
    assert maps["decoder/attention"].shape == (2, 1, 3, 6)
    np.testing.assert_allclose(
        to_numpy(maps["decoder/attention"]),
        to_numpy(weights["decoder/attention"]),
        atol=1e-6,
    )


def test_a_model_with_a_loop_is_not_asked_while_it_drops_units():
    """Another call would drop others, and draw from the generator."""
    inputs = {"source": IDS, "target": IDS[:, :3]}

    def seeded():
        keras.utils.set_random_seed(3)
        model = BahdanauSeq2Seq(11, 13, 8, 1, dropout=0.5)
        model(inputs)
        return model

    plain = seeded()
    expected = [to_numpy(plain(inputs, training=True)) for _ in range(2)]
    asked = seeded()
    with pytest.raises(ValueError, match="it ran inside a loop"):
        get_attention_weights(asked, inputs, training=True)
    found = to_numpy(asked(inputs, training=True))
    np.testing.assert_array_equal(found, expected[1])
    assert np.abs(expected[0] - expected[1]).max() > 0


class Asked(keras.Model):
    """One plain attention, and one that a loop asks token by token."""

    def __init__(self):
        super().__init__(name="asked")
        self.encoder, self.decoder = known("encoder"), known("decoder")

    def call(self, x, return_attention_scores=False):
        memory = self.encoder(x, x)
        steps = [
            self.decoder(x[:, t : t + 1], memory, return_attention_scores=True)
            for t in range(5)
        ]
        outputs = ops.softmax(ops.concatenate([y for y, _ in steps], axis=1))
        weights = ops.concatenate([w for _, w in steps], axis=2)
        if return_attention_scores:
            return outputs, {"decoder": weights}
        return outputs


def test_asking_a_model_for_its_loop_keeps_the_maps_of_its_other_layers():
    model = Asked()
    outputs, maps = get_attention_weights(model, X)
    assert list(maps) == ["encoder", "decoder"] and not maps.skipped
    expected = model.encoder(X, X, return_attention_scores=True)[1]
    np.testing.assert_allclose(maps["encoder"], to_numpy(expected), atol=1e-6)
    _, expected = model(X, return_attention_scores=True)
    np.testing.assert_allclose(
        maps["decoder"], to_numpy(expected["decoder"]), atol=1e-6
    )
    np.testing.assert_array_equal(to_numpy(outputs), to_numpy(model(X)))


class AskedForMore(Asked):
    """Tells also of a layer that was not chosen."""

    def call(self, x, return_attention_scores=False):
        result = super().call(x, return_attention_scores)
        if not return_attention_scores:
            return result
        outputs, maps = result
        return outputs, maps | {"encoder": ops.ones((2, 2, 5, 5)) / 5}


@pytest.mark.parametrize("chosen", ["dec*", ["decoder"]])
def test_a_model_that_is_asked_tells_of_the_chosen_layers_only(chosen):
    model = AskedForMore()
    _, maps = get_attention_weights(model, X, layers=chosen)
    assert list(maps) == ["decoder"] and not maps.skipped
    assert set(get_attention_weights(model, X)[1]) == {"encoder", "decoder"}


class TellsOfOthers(Asked):
    def call(self, x, return_attention_scores=False):
        result = super().call(x, return_attention_scores)
        if not return_attention_scores:
            return result
        return result[0], {"rows": result[1]["decoder"]}


def test_a_chosen_layer_that_the_model_does_not_tell_of_is_named():
    model = TellsOfOthers()
    with pytest.raises(ValueError, match="decoder: it ran in a graph, or"):
        get_attention_weights(model, X, layers="decoder")
    assert list(get_attention_weights(model, X)[1]) == ["encoder", "rows"]


class SpeaksOfItsLoop(keras.Model):
    def __init__(self):
        super().__init__(name="speaks")
        self.rnn = layers.RNN(Twice(name="cell"))

    def call(self, x, return_attention_scores=False):
        output = self.rnn(x)
        maps = {"cell": ops.ones((2, 1, 5, 5)) / 5}
        return (output, maps) if return_attention_scores else output


@pytest.mark.skipif(not IS_TENSORFLOW, reason="tf.function")
def test_a_model_is_asked_for_a_recurrent_layer_in_a_graph():
    import tensorflow as tf

    model = SpeaksOfItsLoop()
    model(X)
    asked = tf.function(lambda: dict(get_attention_weights(model, X)[1]))
    maps = asked()
    assert list(maps) == ["cell"]
    np.testing.assert_allclose(maps["cell"], 0.2)
