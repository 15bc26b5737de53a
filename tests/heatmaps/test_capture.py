"""Weights of models that were not made to show them."""

import sys
import threading
import warnings

from contract import draw, to_numpy
from d2l_attention import (
    FlashAttention,
    LongformerAttention,
    MultiHeadAttention,
    Transformer,
)
from d2l_attention.heatmaps import (
    AttentionMaps,
    AttentionRecorder,
    adapters,
    get_attention_gradients,
    get_attention_weights,
    register_attention_adapter,
)
from d2l_attention.heatmaps.capture import _capture
import keras
from keras import layers, ops
import numpy as np
import pytest
from test_zoo import ask
from zoo import Block, attend, scores

IDS = np.array([[5, 3, 9, 2, 0, 0], [7, 1, 4, 8, 6, 2]], "int32")
MASK = IDS != 0
X = draw(2, 5, 8)


def attention(name="attention", **options):
    return layers.MultiHeadAttention(2, 4, name=name, **options)


def weights_of(layer, x, **options):
    """What `return_attention_scores` says."""
    return to_numpy(layer(x, x, return_attention_scores=True, **options)[1])


def embedding(**options):
    """Vectors long enough for weights that differ."""
    return layers.Embedding(
        11, 8, keras.initializers.RandomNormal(stddev=2.0, seed=1), **options
    )


def functional(dtype=None, dropout=0.0):
    """Two attentions with residuals; the mask is explicit."""
    keras.utils.set_random_seed(0)
    ids = keras.Input((6,), dtype="int32")
    mask = keras.ops.not_equal(ids, 0)[:, None]
    x = embedding(dtype=dtype)(ids)
    for i in range(2):
        attend = layers.MultiHeadAttention(
            2, 4, dropout=dropout, dtype=dtype, name=f"attend_{i}"
        )
        y = attend(x, x, attention_mask=mask, use_causal_mask=i == 1)
        x = layers.Add(dtype=dtype)([x, y])
    return keras.Model(ids, layers.Dense(3, dtype=dtype)(x))


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.embedding = embedding()
        self.inner = functional_block()
        self.attend = layers.MultiHeadAttention(2, 4, name="shared")

    def call(self, ids):
        x = self.inner(self.embedding(ids))
        return self.attend(self.attend(x, x), x)


def functional_block():
    x = keras.Input((None, 8))
    y = layers.MultiHeadAttention(2, 4, name="nested")(x, x)
    return keras.Model(x, y, name="block")


def transformer():
    keras.utils.set_random_seed(0)
    return Transformer(11, 13, dim=12, num_layers=2, num_heads=3)


def by_hand(model, ids):
    """The weights of `functional`, from `return_attention_scores`."""
    mask = (ids != 0)[:, None]
    for layer in model.layers:
        if isinstance(layer, layers.Embedding):
            x = layer(ids)
    found = []
    for i in range(2):
        y, weights = model.get_layer(f"attend_{i}")(
            x,
            x,
            attention_mask=mask,
            use_causal_mask=i == 1,
            return_attention_scores=True,
        )
        x = x + y
        found.append(to_numpy(weights))
    return found


def test_the_weights_are_those_of_the_layers():
    model = functional()
    outputs, maps = get_attention_weights(model, IDS)
    np.testing.assert_array_equal(to_numpy(outputs), to_numpy(model(IDS)))
    assert [path.split("/")[-1] for path in maps] == ["attend_0", "attend_1"]
    for weights, expected in zip(
        maps.values(), by_hand(model, IDS), strict=True
    ):
        assert isinstance(weights, np.ndarray)
        np.testing.assert_allclose(weights, expected, atol=1e-6)


class Ours(keras.Layer):
    """Holds a layer of this package, as somebody's layer might."""

    def __init__(self):
        super().__init__()
        self.attention = MultiHeadAttention(2, 4)

    def call(self, query, key):
        return self.attention(query, key=key)


def loaded(tmp_path):
    functional(dropout=0.5).save(tmp_path / "model.keras")
    return keras.saving.load_model(tmp_path / "model.keras")


def of_one(layer):
    """A model of one attention, whatever its class calls its arguments."""
    keras.utils.set_random_seed(0)
    ids = keras.Input((6,), dtype="int32")
    x = embedding()(ids)
    listed = isinstance(layer, layers.Attention)
    return keras.Model(ids, layer([x, x]) if listed else layer(x, x))


KINDS = {
    "functional": (lambda path: functional(), 2),
    "loaded, with dropout": (loaded, 2),
    "subclassed, nested, shared": (lambda path: Subclassed(), 3),
    "float16": (lambda path: functional("float16"), 2),
    "mixed_float16": (lambda path: functional("mixed_float16"), 2),
    "GroupQueryAttention": (
        lambda path: of_one(layers.GroupQueryAttention(4, 4, 2)),
        1,
    ),
    "Attention": (lambda path: of_one(layers.Attention()), 1),
    "AdditiveAttention": (lambda path: of_one(layers.AdditiveAttention()), 1),
    "ours": (lambda path: of_one(Ours()), 1),
}


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        *((kind, mode) for kind in KINDS for mode in ("eager", "graph")),
        ("functional", "xla"),
        ("ours", "xla"),
    ],
)
def test_asking_changes_no_bit(kind, mode, tmp_path):
    if keras.backend.backend() != "tensorflow" and mode != "eager":
        pytest.skip("tf.function")
    make, num_maps = KINDS[kind]
    model = make(tmp_path)
    model(IDS)

    def plain(ids):
        return model(ids)

    def asking(ids):
        outputs, maps = get_attention_weights(model, ids)
        return outputs, dict(maps)

    if mode != "eager":
        import tensorflow as tf

        plain, asking = (
            tf.function(f, jit_compile=mode == "xla") for f in (plain, asking)
        )
    expected = to_numpy(plain(IDS))
    outputs, maps = asking(IDS)
    np.testing.assert_array_equal(to_numpy(outputs), expected)
    assert len(maps) == num_maps
    for weights in maps.values():
        assert len(weights.shape) == 4
        rows = to_numpy(weights).sum(-1)
        assert (np.isclose(rows, 1, atol=1e-2) | (rows == 0)).all()
    np.testing.assert_array_equal(to_numpy(plain(IDS)), expected)


def test_nothing_is_left_behind():
    model = functional()
    before = [dict(layer.__dict__) for layer in model.layers]
    get_attention_weights(model, IDS)
    with pytest.raises(Exception, match="."):
        get_attention_weights(model, np.zeros((2, 3, 4, 5)))
    for layer, attributes in zip(model.layers, before, strict=True):
        assert "call" not in layer.__dict__
        assert set(layer.__dict__) == set(attributes)


def test_a_layer_called_twice_has_two_maps():
    model = Subclassed()
    _, maps = get_attention_weights(model, IDS)
    names = [path.split("/")[-1] for path in maps]
    assert names == ["nested", "shared", "shared#2"]
    first, second = list(maps.values())[1:]
    assert np.abs(first - second).max() > 1e-3


def test_dropout_is_on_in_training_and_not_in_the_weights():
    """And asking draws nothing: the pass after it drops the same units."""
    plain, asked = functional(dropout=0.5), functional(dropout=0.5)
    keras.utils.set_random_seed(3)
    expected = [to_numpy(plain(IDS, training=True)) for _ in range(2)]
    keras.utils.set_random_seed(3)
    for output in expected:
        found, maps = get_attention_weights(asked, IDS, training=True)
        np.testing.assert_array_equal(to_numpy(found), output)
        for weights in maps.values():
            np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-6)
    assert np.abs(expected[0] - expected[1]).max() > 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: layers.GroupQueryAttention(4, 4, 2, name="attend"),
        lambda: layers.Attention(name="attend"),
        lambda: layers.AdditiveAttention(name="attend"),
    ],
)
def test_the_other_attentions_of_keras(make):
    layer = make()
    x = keras.Input((5, 8))
    single = isinstance(layer, layers.Attention)
    model = keras.Model(x, layer([x, x]) if single else layer(x, x))
    data = draw(2, 5, 8)
    outputs, maps = get_attention_weights(model, data)
    arguments = ([data, data],) if single else (data, data)
    expected, weights = layer(*arguments, return_attention_scores=True)
    (found,) = maps.values()
    assert found.shape == (2, 1 if single else 4, 5, 5)
    np.testing.assert_allclose(
        found.reshape(weights.shape), to_numpy(weights), atol=1e-6
    )
    np.testing.assert_allclose(to_numpy(outputs), to_numpy(expected), atol=1e-5)


def test_the_transformer_of_this_package_by_its_own_names():
    model = transformer()
    inputs = {"source": IDS, "target": IDS[:, :5]}
    logits, expected = model(inputs, return_attention_scores=True)
    outputs, maps = get_attention_weights(model, inputs)
    np.testing.assert_array_equal(to_numpy(outputs), to_numpy(logits))
    assert set(maps) == set(expected), "the names on the way to a layer"
    for path, weights in expected.items():
        np.testing.assert_array_equal(maps[path], to_numpy(weights))
    _, cross = get_attention_weights(model, inputs, layers="*cross_attention")
    assert list(cross) == [path for path in maps if "cross" in path]


def test_a_model_without_attention_or_without_that_layer_is_refused():
    x = keras.Input((3,))
    model = keras.Model(x, layers.Dense(2)(x), name="plain")
    with pytest.raises(ValueError, match="'plain' has no attention whose"):
        get_attention_weights(model, np.zeros((1, 3)))
    with pytest.raises(ValueError, match="called 'decoder/.'.*attend_1"):
        get_attention_weights(functional(), IDS, layers="decoder/*")


class Homemade(keras.Layer):
    def weigh(self, x):
        scores = keras.ops.einsum("btd,bsd->bts", x, x)
        return keras.ops.softmax(scores)

    def call(self, x):
        return keras.ops.matmul(self.weigh(x), x)


@pytest.mark.parametrize(
    "weightless", [FlashAttention(2, 4), LongformerAttention(2, 4, window=2)]
)
def test_layers_that_form_no_weights_are_named(weightless):
    inputs = keras.Input((6, 8))
    x = draw(1, 6, 8)
    model = keras.Model(inputs, MultiHeadAttention(2, 4)(weightless(inputs)))
    with pytest.warns(UserWarning, match=f"{weightless.name}: its mechanism"):
        outputs, maps = get_attention_weights(model, x)
    np.testing.assert_array_equal(to_numpy(outputs), to_numpy(model(x)))
    assert [w.shape for w in maps.values()] == [(1, 2, 6, 6)]
    assert list(maps.skipped) == [weightless.name]
    alone = keras.Model(inputs, weightless(inputs))
    with pytest.raises(ValueError, match="forms no weights"):
        get_attention_weights(alone, x)


def test_other_layers_are_taught_by_an_adapter(monkeypatch):
    monkeypatch.setattr(adapters, "_REGISTERED", [])
    x = keras.Input((3, 4))
    model = keras.Model(x, Homemade(name="home")(x))
    data = draw(2, 3, 4)
    assert list(get_attention_weights(model, data)[1]) == ["home"]

    def adapter(layer, record):
        original = layer.weigh

        def weigh(x):
            weights = original(x)
            record(weights / 2)
            return weights

        return [(layer, "weigh", weigh)]

    register_attention_adapter(Homemade, adapter)
    outputs, maps = get_attention_weights(model, data)
    assert maps["home"].shape == (2, 1, 3, 3)
    np.testing.assert_allclose(
        2 * maps["home"][:, 0] @ data, to_numpy(outputs), atol=1e-6
    )
    with pytest.raises(TypeError, match="class of layers.*42"):
        register_attention_adapter(42, adapter)
    with pytest.raises(TypeError, match="must be a function.*42"):
        register_attention_adapter(Homemade, 42)


def test_a_kind_without_an_adapter_is_read_by_its_softmax(monkeypatch):
    monkeypatch.setattr(adapters, "_REGISTERED", [])
    register_attention_adapter(Homemade)
    layer, data = Homemade(name="home"), draw(2, 3, 4)
    outputs, maps = get_attention_weights(layer, data)
    np.testing.assert_allclose(
        maps["home"][:, 0] @ data, to_numpy(outputs), atol=1e-6
    )
    weights = maps["home"]

    def halves(layer, record):
        weigh = layer.weigh
        return [(layer, "weigh", lambda x: record(weigh(x) / 2) or weigh(x))]

    # What is registered later is asked first, as when a cell is mended.
    register_attention_adapter(Homemade, halves)
    _, maps = get_attention_weights(layer, data)
    np.testing.assert_array_equal(maps["home"], weights / 2)


def test_maps_are_saved_and_loaded_and_an_old_file_survives(
    tmp_path, monkeypatch
):
    _, maps = get_attention_weights(functional(), IDS)
    path = tmp_path / "maps.npz"
    maps.save(path)
    again = AttentionMaps.load(path)
    assert list(again) == list(maps)
    for name, weights in maps.items():
        np.testing.assert_array_equal(again[name], weights)

    def fail(file, array, **options):
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(np, "save", fail)
    with pytest.raises(OSError, match="disk full"):
        maps.save(path)
    assert list(AttentionMaps.load(path)) == list(maps)
    assert [file.name for file in tmp_path.iterdir()] == ["maps.npz"]


@pytest.mark.parametrize("name", ["file", "allow_pickle", "arr_0", "a/b#2"])
def test_a_layer_of_any_name_is_saved(name, tmp_path):
    weights = np.random.default_rng(0).random((2, 3, 5, 7), "float32")
    told = {
        "skipped": {"dense": "it forms no weights"},
        "num_samples": 2,
        "after_softmax": {name: "mask"},
    }
    maps = AttentionMaps({name: weights, "other": weights * 2}, **told)
    maps.save(tmp_path / "m")
    again = AttentionMaps.load(tmp_path / "m")
    assert list(again) == [name, "other"]
    assert {x: getattr(again, x) for x in told} == told
    np.testing.assert_array_equal(again[name], weights)
    with pytest.raises(KeyError, match=f"no map 'othr'.*{name}, other"):
        again["othr"]
    assert again.get("othr") is None


def test_recording_changes_no_loss():
    losses, targets = [], draw(2, 6, 3)
    for callbacks in ([], [AttentionRecorder(IDS, every=2)]):
        model = functional(dropout=0.3)
        model.compile("adam", "mse", jit_compile=False)
        history = model.fit(
            IDS, targets, epochs=4, callbacks=callbacks, verbose=0
        )
        losses.append(history.history["loss"])
    np.testing.assert_array_equal(*losses)
    (recorder,) = callbacks
    assert recorder.epochs == [0, 2]
    first, last = (next(iter(maps.values())) for maps in recorder.frames)
    assert first.shape == last.shape == (2, 2, 6, 6)
    assert np.abs(first - last).max() > 0
    with pytest.raises(ValueError, match="every.*0"):
        AttentionRecorder(IDS, every=0)


@pytest.mark.parametrize("part", [0, 2])
def test_recording_a_model_that_shows_less_warns_once_and_trains_on(part):
    inputs = keras.Input((6, 8))
    x = FlashAttention(2, 4, name="flash")(inputs)
    for _ in range(part):
        x = layers.MultiHeadAttention(2, 4)(x, x)
    model = keras.Model(inputs, x)
    model.compile("sgd", "mse", jit_compile=False)
    data, recorder = draw(2, 6, 8), AttentionRecorder(draw(1, 6, 8))
    with pytest.warns(UserWarning, match="flash: its mechanism") as told:
        model.fit(data, data, epochs=3, callbacks=[recorder], verbose=0)
    assert [x.category for x in told].count(UserWarning) == 1
    assert recorder.epochs == [0, 1, 2]
    assert [len(maps) for maps in recorder.frames] == [part] * 3
    assert all("flash" in maps.skipped for maps in recorder.frames)


class PartlyCompiled(keras.Model):
    """A part of it is a `tf.function`, which was traced before."""

    def __init__(self, is_compiled):
        import tensorflow as tf

        super().__init__()
        self.known, self.hidden = attention("known"), attention("hidden")
        self.dropped = attention("dropped")
        self.part = tf.function(lambda x: self.hidden(x, x))
        if not is_compiled:
            self.part = lambda x: x

    def call(self, x):
        return self.part(self.known(x, x))


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="TensorFlow's"
)
@pytest.mark.parametrize("is_compiled", [True, False])
def test_what_a_compiled_part_may_run_is_named(is_compiled):
    model = PartlyCompiled(is_compiled)
    for layer in (model.hidden, model.dropped):
        layer(X, X)
    model(X)
    model.compile("sgd", "mse")
    model.predict(X, verbose=0)
    _, maps, skipped = ask(model, X)
    assert list(maps) == ["known"]
    told = "it was not called, or a compiled function"
    assert [*skipped] == (["hidden", "dropped"] if is_compiled else [])
    assert all(reason.startswith(told) for reason in skipped.values())


class TraceAttention(keras.Layer):
    """Dropout, moving means, a loss and an attribute, in one attention."""

    def __init__(self):
        super().__init__(name="traces")
        self.dropout = layers.Dropout(0.5, seed=1)
        self.norm = layers.BatchNormalization()

    def build(self, shape):
        self.norm.build(shape)

    def call(self, x, training=False):
        weights = ops.softmax(scores(x))
        self.last = weights
        self.add_loss(ops.mean(weights))
        weights = self.dropout(weights, training=training)
        return self.norm(ops.matmul(weights, x), training=training)


@pytest.mark.parametrize("training", [False, True])
def test_a_layer_is_left_as_one_call_leaves_it(training):
    plain, asked = TraceAttention(), TraceAttention()
    for layer in (plain, asked):
        layer(X)
    expected = to_numpy(plain(X, training=training))
    found, maps, _ = _capture(asked, (X,), {"training": training}, None)
    assert list(maps) == ["traces"]
    np.testing.assert_array_equal(to_numpy(found), expected)
    assert len(asked.losses) == len(plain.losses)
    np.testing.assert_array_equal(to_numpy(asked.last), to_numpy(plain.last))
    for a, b in zip(asked.variables, plain.variables, strict=True):
        np.testing.assert_array_equal(to_numpy(a), to_numpy(b))
    np.testing.assert_array_equal(
        to_numpy(asked(X, training=True)), to_numpy(plain(X, training=True))
    )


READ = {
    "known": lambda: layers.MultiHeadAttention(2, 4),
    "by softmax": TraceAttention,
    "by identity": lambda: FlashAttention(2, 4),
}


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="TensorFlow's formats"
)
@pytest.mark.parametrize("kind", READ)
def test_a_model_that_was_read_is_saved_as_before(kind, tmp_path):
    import tensorflow as tf

    x, layer = keras.Input((5, 8)), READ[kind]()
    y = layer(x, x) if kind == "known" else layer(x)
    model = keras.Model(x, layers.Dense(1)(y))
    get_attention_weights(model, X, layers=[layer.name])
    recorder = AttentionRecorder(X, layers=[layer.name])
    model.compile("sgd", "mse")
    model.fit(X, np.ones((2, 5, 1)), callbacks=[recorder], verbose=0)
    assert len(recorder.frames[0]) == 1
    expected = to_numpy(model(X))
    model.export(tmp_path / "exported", verbose=False)
    tf.saved_model.save(model, tmp_path / "saved")
    tf.train.Checkpoint(model).save(tmp_path / "checkpoint")
    exported = tf.saved_model.load(tmp_path / "exported")
    np.testing.assert_allclose(exported.serve(X), expected, atol=1e-5)


def test_weights_of_another_path_than_the_outputs_are_not_shown():
    """As in a nightly of Keras, whose fused path alone was causal."""

    class TwoPaths(keras.layers.MultiHeadAttention):
        def _compute_attention(
            self,
            query,
            key,
            value,
            attention_mask=None,
            training=None,
            return_attention_scores=False,
        ):
            output, weights = super()._compute_attention(
                query,
                key,
                value,
                attention_mask,
                training,
                return_attention_scores,
            )
            return (2 * output if weights is None else output), weights

    x = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32") / 50
    layer = TwoPaths(2, 4, name="attention")
    layer(x, x)
    if (
        layer._compute_attention(*[np.ones((1, 2, 2, 4), "float32")] * 3)[1]
        is not None
    ):
        pytest.skip("this Keras has no fused operation on this machine")
    with pytest.raises(ValueError, match="give different outputs"):
        get_attention_weights(layer, x, x)


class TwoInputs(keras.Model):
    def __init__(self):
        super().__init__(name="two")
        self.attention = attention()

    def call(self, q, kv, *, shift=0.0):
        return self.attention(q + shift, kv)


def test_the_model_is_called_as_it_is():
    model, memory = TwoInputs(), draw(2, 3, 8)
    for args, kwargs in (
        ((X, memory), {}),
        ((X,), {"kv": memory, "shift": 1.5}),
        ((), {"q": X, "kv": memory}),
    ):
        outputs, maps = get_attention_weights(model, *args, **kwargs)
        assert maps["attention"].shape == (2, 2, 5, 3)
        np.testing.assert_array_equal(
            to_numpy(outputs), to_numpy(model(*args, **kwargs))
        )
    both = [
        get_attention_weights(model, X, memory, shift=shift)[1]["attention"]
        for shift in (0.0, 1.5)
    ]
    assert np.abs(both[0] - both[1]).max() > 1e-3


def test_attention_over_several_axes_has_one_axis_of_queries_and_one_of_keys():
    data = draw(2, 3, 4, 8)
    layer = attention("both", attention_axes=(1, 2))
    _, maps = get_attention_weights(layer, data, data)
    weights = weights_of(layer, data)
    assert weights.shape == (2, 2, 3, 4, 3, 4)
    np.testing.assert_allclose(
        maps["both"], weights.reshape(2, 2, 12, 12), atol=1e-6
    )
    layer = attention("last", attention_axes=(2,))
    _, maps = get_attention_weights(layer, data, data)
    weights = weights_of(layer, data)
    assert weights.shape == (2, 3, 2, 4, 4)
    np.testing.assert_allclose(
        maps["last"], weights.reshape(6, 2, 4, 4), atol=1e-6
    )


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize(
    "kind",
    [
        lambda **options: attention(use_bias=False, **options),
        lambda **options: layers.GroupQueryAttention(
            4, 2, 2, use_bias=False, name="attention", **options
        ),
    ],
)
def test_a_query_that_may_see_nothing_shows_what_keras_does(kind, dropout):
    """The fused operation averages all keys; the other path gives zeros."""
    layer = kind(dropout=dropout)
    mask = np.ones((2, 5, 5), bool)
    mask[0, 2] = False
    outputs, maps = get_attention_weights(layer, X, X, attention_mask=mask)
    all_keys = np.ones((2, 5, 5), bool)
    even = {"attention_mask": all_keys}
    x = X.copy()
    x[0, 2] = 0.0  # a query of zeros scores all keys alike: their mean
    mean = to_numpy(layer(x, X, **even))[0, 2]
    row = maps["attention"][0, :, 2]
    expected = 0.0 if np.abs(to_numpy(outputs)[0, 2]).max() == 0 else 0.2
    np.testing.assert_allclose(row, expected)
    if expected:
        np.testing.assert_allclose(to_numpy(outputs)[0, 2], mean, atol=1e-5)
    others = np.delete(maps["attention"], 2, axis=2)
    assert (others.max(-1) > 0.2).all()


@pytest.mark.every_backend
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_row_that_may_see_nothing_has_a_true_map_or_none(dtype):
    """torch's fused operation hides keys by a number that float16 has."""
    layer = attention(dtype=dtype, use_bias=False)
    x = 3 * draw(1, 4, 8)
    mask = np.array([[[True, False, False, False]] + 3 * [4 * [False]]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            output, maps = get_attention_weights(
                layer, x, x, attention_mask=mask
            )
        except ValueError as error:
            assert "give different outputs" in str(error)
            return
    value = layer._value_dense(ops.convert_to_tensor(x, dtype))
    value = to_numpy(ops.cast(value, "float32"))
    heads = np.einsum("bhts,bshk->bthk", maps["attention"], value)
    expected = layer._output_dense(ops.convert_to_tensor(heads, dtype))
    np.testing.assert_allclose(
        *(to_numpy(ops.cast(y, "float32")) for y in (output, expected)),
        atol=1e-5 if dtype == "float32" else 0.2,
    )


def test_bfloat16_is_saved_as_what_every_reader_knows(tmp_path):
    layer = attention(dtype="bfloat16")
    _, maps = get_attention_weights(layer, X, X)
    assert maps["attention"].dtype == "bfloat16"
    maps.save(tmp_path / "maps.npz")
    again = AttentionMaps.load(tmp_path / "maps.npz")
    assert again["attention"].dtype == "float32"
    np.testing.assert_array_equal(
        again["attention"], maps["attention"].astype("float32")
    )


@pytest.mark.every_backend
def test_the_softmax_of_keras_is_put_back():
    nn = sys.modules["keras.src.backend"].nn
    before = nn.softmax
    get_attention_weights(attention(), X, X)
    with pytest.raises(Exception, match="."):
        get_attention_weights(attention(), np.zeros((2, 3)), np.zeros((2, 3)))
    assert nn.softmax is before


class WithoutWeights(layers.Layer):
    """A layer like this package's, which has `attend` and forms no weights."""

    weights_from = "For small inputs, `dense_weights` gives them."

    def project_query(self, x):
        return x

    project_key = project_value = project_query

    def attend(self, query, key, value, mask):
        return value, None

    def call(self, x):
        return self.attend(x, x, x, None)[0]


def test_a_layer_that_says_where_its_weights_come_from_is_named():
    x = keras.Input((5, 8))
    y = WithoutWeights(name="fast")(attention("dense")(x, x))
    with pytest.warns(UserWarning, match="fast: .*`dense_weights` gives them"):
        _, maps = get_attention_weights(keras.Model(x, y), X)
    assert list(maps) == ["dense"]
    assert maps.skipped["fast"].endswith(WithoutWeights.weights_from)


def test_a_layer_without_weights_can_have_an_adapter_of_its_own(monkeypatch):
    monkeypatch.setattr(adapters, "_REGISTERED", [])

    class Taught(WithoutWeights):
        pass

    def read(layer, record):
        def attend(query, key, value, mask):
            record(ops.ones((2, 5, 5)) / 5)
            return value, None

        return [(layer, "attend", attend)]

    register_attention_adapter(Taught, read)
    _, maps = get_attention_weights(Taught(name="taught"), X)
    assert maps["taught"].shape == (2, 1, 5, 5)


@pytest.mark.skipif(keras.backend.backend() != "torch", reason="torch's")
def test_a_module_of_torch_is_named():
    import torch

    inside = torch.nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)
    model = keras.Sequential([keras.layers.TorchModuleWrapper(inside), Block()])
    with pytest.warns(UserWarning, match="a module of torch, not a layer"):
        _, maps = get_attention_weights(model, X)
    assert list(maps) == ["block/att"] and len(maps.skipped) == 1


def test_a_softmax_alone_is_no_attention():
    with pytest.raises(ValueError, match="no attention whose weights"):
        get_attention_weights(layers.Softmax(), X)


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
    with pytest.raises(ValueError, match="slots: (what )?its softmax"):
        get_attention_weights(SlotAttention(name="slots"), X, allowed)
    monkeypatch.setattr(adapters, "_REGISTERED", [])
    register_attention_adapter(SlotAttention)
    _, maps = get_attention_weights(SlotAttention(name="slots"), X, allowed)
    assert maps["slots"].shape == (2, 1, 5, 7)


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
                attend(X)
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
