"""Calls in which a map was lost or wrong, found by reading the code."""

import sys
import threading
import warnings

from contract import draw, to_numpy
from d2l_attention.heatmaps import (
    adapters,
    check_attention_masks,
    get_attention_gradients,
    get_attention_weights,
    register_attention_adapter,
)
import keras
from keras import layers, ops
import numpy as np
import pytest

X = draw(2, 5, 8)
IS_TENSORFLOW = keras.backend.backend() == "tensorflow"


def attention(name="attention", **options):
    return layers.MultiHeadAttention(2, 4, name=name, **options)


def attend_by_hand(x):
    scores = ops.einsum("btd,bsd->bts", x, x)
    return ops.matmul(ops.softmax(scores), x)


def test_a_softmax_alone_is_no_attention():
    with pytest.raises(ValueError, match="no attention whose weights"):
        get_attention_weights(layers.Softmax(), X)


class Attention(keras.Model):
    """Has the name of its part, and a classifier's softmax behind it."""

    def __init__(self):
        super().__init__(name="attention")
        self.attention = attention()
        self.dense = layers.Dense(11)

    def call(self, x):
        return ops.softmax(self.dense(self.attention(x, x)))


def test_a_part_may_have_the_name_of_its_model():
    outputs, maps = get_attention_weights(Attention(), X)
    assert list(maps) == ["attention"] and not maps.skipped
    assert maps["attention"].shape == (2, 2, 5, 5)
    np.testing.assert_allclose(to_numpy(outputs).sum(-1), 1, atol=1e-5)


class Asked(keras.Model):
    """One plain attention, and one that a loop asks token by token."""

    def __init__(self):
        super().__init__(name="asked")
        self.encoder, self.decoder = attention("encoder"), attention("decoder")

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


class AnswersWithoutWeights(layers.MultiHeadAttention):
    def _compute_attention(self, query, key, value, *args, **kwargs):
        return ops.dot_product_attention(query, key, value), None


def test_a_subclass_that_gives_no_weights_is_heard():
    layer = AnswersWithoutWeights(2, 4, name="own", use_bias=False)
    _, maps = get_attention_weights(layer, X, X)
    plain = attention(use_bias=False)
    plain(X, X)
    plain.set_weights(layer.get_weights())
    _, expected = get_attention_weights(plain, X, X)
    np.testing.assert_allclose(maps["own"], expected["attention"], atol=1e-6)
    _, again, gradients = get_attention_gradients(
        layer, X, X, chosen_output=lambda y: y[:, 3, 1]
    )
    np.testing.assert_allclose(again["own"], maps["own"], atol=1e-6)
    assert np.abs(gradients["own"]).max() > 0


class Perceiver(keras.Layer):
    """Queries that are weights of the layer: as many as it likes."""

    def build(self, shape):
        self.latents = self.add_weight(shape=(3, 8), initializer="normal")

    def call(self, x):
        scores = ops.einsum("td,bsd->bts", self.latents, x)
        return ops.matmul(ops.softmax(scores), x)


class GatedAttention(keras.Layer):
    """A known attention and one of its own."""

    def __init__(self, **options):
        super().__init__(**options)
        self.attention = attention()
        self.perceiver = layers.Dense(3)

    def build(self, shape):
        self.attention.build(shape, shape)
        self.perceiver.build(shape)

    def call(self, x):
        scores = ops.transpose(self.perceiver(x), (0, 2, 1))  # (B, 3, S)
        pooled = ops.matmul(ops.softmax(scores), x)
        return ops.concatenate([self.attention(x, x), pooled], axis=1)


@pytest.mark.parametrize("kind", [Perceiver, GatedAttention])
def test_queries_that_are_no_inputs_are_named(kind):
    x = keras.Input((5, 8))
    y = attention("known")(kind(name="latent")(x), x)
    with pytest.warns(UserWarning, match="latent: its softmax looks like"):
        _, maps = get_attention_weights(keras.Model(x, y), X)
    assert "known" in maps and list(maps.skipped) == ["latent"]


class MaskedSelfAttention(keras.Layer):
    def call(self, x):
        return attend_by_hand(x)


def test_masked_attention_is_attention():
    _, maps = get_attention_weights(MaskedSelfAttention(name="masked"), X)
    assert maps["masked"].shape == (2, 1, 5, 5)


class SoftmaxedAttention(keras.Layer):
    def __init__(self, **options):
        super().__init__(**options)
        self.softmax = layers.Softmax()

    def call(self, x, allowed):
        scores = ops.einsum("btd,bsd->bts", x, x)
        return ops.matmul(self.softmax(scores, mask=allowed), x)


def test_a_row_without_keys_is_what_the_softmax_layer_makes_of_it():
    allowed = np.tril(np.ones((2, 5, 5), bool))
    allowed[0, 2] = False
    layer = SoftmaxedAttention(name="left_padded")
    outputs, maps = get_attention_weights(layer, X, allowed)
    assert np.abs(maps["left_padded"][0, 0, 2]).max() == 0
    assert check_attention_masks(maps, use_causal_mask=True) == []
    np.testing.assert_allclose(
        maps["left_padded"][:, 0] @ X, to_numpy(outputs), atol=1e-5
    )


def in_windows(x):
    """Two windows of two tokens; the fifth token stays as it is."""
    windows = ops.reshape(x[:, :4], (2, 2, 2, 8))
    scores = ops.einsum("bwtd,bwsd->bwts", windows, windows)
    mixed = ops.einsum("bwts,bwsd->bwtd", ops.softmax(scores), windows)
    rest = ops.reshape(mixed, (2, 4, 8))
    return ops.concatenate([rest, x[:, 4:]], axis=1)


class WindowMixer(keras.Layer):
    def call(self, x):
        return in_windows(x)


class WindowAttention(keras.Layer):
    def call(self, x):
        return in_windows(x)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [(WindowMixer, "looks like attention"), (WindowAttention, "the axes of")],
)
def test_windows_that_a_layer_cuts_are_no_heads(kind, reason):
    x = keras.Input((5, 8), batch_size=2)
    model = keras.Model(x, attention("known")(kind(name="windows")(x), x))
    with pytest.warns(UserWarning, match=f"windows: .*{reason}"):
        _, maps = get_attention_weights(model, X)
    assert list(maps) == ["known"] and list(maps.skipped) == ["windows"]


class CrossCovarianceAttention(keras.Layer):
    """Features attend to features, in two heads of four."""

    def call(self, x):
        heads = ops.reshape(x, (2, 5, 2, 4))
        scores = ops.einsum("bthk,bthl->bhkl", heads, heads)
        mixed = ops.einsum("bhkl,bthl->bthk", ops.softmax(scores), heads)
        return ops.reshape(mixed, (2, 5, 8))


def test_features_that_attend_to_features_are_no_map():
    layer = CrossCovarianceAttention(name="covariance")
    with pytest.raises(ValueError, match="covariance: the axes of"):
        get_attention_weights(layer, X)


class FoldedAttention(keras.Layer):
    """Heads in the batch; for the whole of it, or head by head."""

    num_heads = 4

    def __init__(self, heads_first=False, **options):
        super().__init__(**options)
        self.heads_first = heads_first

    def call(self, x):
        heads = ops.reshape(x, (2, 5, 4, 2))
        axes = (2, 0, 1, 3) if self.heads_first else (0, 2, 1, 3)
        heads = ops.transpose(heads, axes)
        if not self.heads_first:
            heads = ops.reshape(heads, (8, 5, 2))
        scores = ops.matmul(heads, ops.swapaxes(heads, -1, -2))
        return ops.matmul(ops.softmax(scores), heads)


def test_heads_in_the_batch_are_unfolded_and_heads_before_it_are_named():
    layer = FoldedAttention(name="folded")
    outputs, maps = get_attention_weights(layer, X)
    assert maps["folded"].shape == (2, 4, 5, 5)
    heads = X.reshape(2, 5, 4, 2)
    np.testing.assert_allclose(
        np.einsum("bhts,bshk->bhtk", maps["folded"], heads),
        to_numpy(outputs).reshape(2, 4, 5, 2),
        atol=1e-5,
    )
    _, _, gradients = get_attention_gradients(
        layer, X, chosen_output=lambda y: ops.mean(y, (1, 2))
    )
    assert gradients["folded"].shape == (2, 4, 5, 5)
    with pytest.raises(ValueError, match="first: the axes of its softmax"):
        get_attention_weights(FoldedAttention(True, name="first"), X)


class Slots(keras.Layer):
    """As many memory slots as the mask has columns, as no input has rows."""

    def build(self, shape):
        self.slots = self.add_weight(shape=(7, 8), initializer="normal")

    def call(self, x, allowed):
        scores = ops.einsum("btd,sd->bts", x, self.slots)
        scores = ops.where(allowed, scores, -1e9)
        return ops.matmul(ops.softmax(scores), self.slots)


class SlotAttention(Slots):
    pass


def test_the_columns_of_a_mask_are_not_features(monkeypatch):
    allowed = np.ones((2, 5, 7), bool)
    # By their columns, slots are not told from experts or from classes.
    with pytest.raises(ValueError, match="slots: what its softmax gives"):
        get_attention_weights(SlotAttention(name="slots"), X, allowed)
    monkeypatch.setattr(adapters, "_REGISTERED", [])
    register_attention_adapter(SlotAttention)
    _, maps = get_attention_weights(SlotAttention(name="slots"), X, allowed)
    assert maps["slots"].shape == (2, 1, 5, 7)


class Twice(keras.Layer):
    """A cell that looks twice at a memory: at what it read first, again."""

    state_size = output_size = 8

    def __init__(self, **options):
        super().__init__(**options)
        self.attention = attention()

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


def test_a_recurrent_layer_without_attention_is_no_matter():
    x = keras.Input((5, 8))
    y = layers.LSTM(8, return_sequences=True)(sequences=x)
    _, maps = get_attention_weights(keras.Model(x, attention()(y, y)), X)
    assert list(maps) == ["attention"]


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


def test_other_threads_run_on_unseen():
    model = attention()
    model(X, X)
    nn = sys.modules["keras.src.backend"].nn
    before, other = nn.softmax, attention("other")
    other(X, X)
    errors = []

    def work():
        try:
            for _ in range(5):
                attend_by_hand(X)
                other(X, X)
                model(X, X)
                get_attention_weights(model, X, X)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        _, maps = get_attention_weights(model, X, X)
        assert list(maps) == ["attention"]
    for thread in threads:
        thread.join()
    assert errors == []
    assert nn.softmax is before and "call" not in vars(model)


def test_an_unbuilt_model_in_training_draws_once():
    models = []
    for _ in range(2):
        keras.utils.set_random_seed(5)
        models.append(attention(dropout=0.5))
    plain, asked = models
    keras.utils.set_random_seed(7)
    plain(X, X, training=False)
    expected = to_numpy(plain(X, X, training=True))
    keras.utils.set_random_seed(7)
    found, _ = get_attention_weights(asked, X, X, training=True)
    np.testing.assert_array_equal(to_numpy(found), expected)


def test_a_mask_serves_all_calls_of_its_layer_and_no_other():
    maps = {"shared": np.full((1, 1, 2, 4), 0.25)}
    maps["shared#2"] = maps["shared"]
    mask = np.array([[True, True, True, False]])
    leaks = check_attention_masks(maps, {"shared": mask})
    assert [leak.layer for leak in leaks] == ["shared", "shared#2"]
    with pytest.raises(ValueError, match=r"`key_mask` names \['sharde'\]"):
        check_attention_masks(maps, {"sharde": mask})


def test_outputs_may_begin_with_none():
    class First(keras.Model):
        def __init__(self):
            super().__init__()
            self.attention = attention()

        def call(self, x):
            return None, self.attention(x, x)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (nothing, _), maps = get_attention_weights(First(), X)
    assert nothing is None and list(maps) == ["attention"]
