"""Every attention of a model gives its map, or is named: none is lost."""

import sys
import warnings

from contract import draw, needs_fewer_key_heads, to_numpy
from d2l_attention import BahdanauSeq2Seq, RNNSearch, causal_mask
from d2l_attention.heatmaps import (
    AttentionMaps,
    adapters,
    animate_attention,
    attention_distance,
    attention_entropy,
    attention_rollout,
    check_attention_masks,
    get_attention_weights,
    plot_attention,
    plot_attention_grid,
    plot_entropy,
    register_attention_adapter,
    show_heatmaps,
    view_attention,
)
import keras
from keras import layers, ops
import matplotlib.pyplot as plt
import numpy as np
import pytest

X = draw(2, 5, 8)
IS_TENSORFLOW = keras.backend.backend() == "tensorflow"
IS_JAX = keras.backend.backend() == "jax"


def attention(name="attention", **options):
    return layers.MultiHeadAttention(2, 4, name=name, **options)


def weights_of(layer, x, **options):
    """What `return_attention_scores` says."""
    return to_numpy(layer(x, x, return_attention_scores=True, **options)[1])


class Block(keras.Model):
    def __init__(self, name="block"):
        super().__init__(name=name)
        self.attention = attention("att")

    def call(self, x):
        return x + self.attention(x, x)


class Twins(keras.Model):
    """Two parts that each hold a layer `att`, and three blocks of one name."""

    def __init__(self):
        super().__init__(name="twins")
        self.left, self.right = Block("left"), Block("right")
        self.blocks = [Block(), Block(), Block()]

    def call(self, x):
        x = self.right(self.left(x))
        for block in self.blocks:
            x = block(x)
        return x


def test_layers_of_one_name_are_told_apart_by_the_way_to_them():
    model = Twins()
    _, maps = get_attention_weights(model, X)
    assert list(maps) == [
        "left/att",
        "right/att",
        "block/att",
        "block:2/att",
        "block:3/att",
    ]
    x = X
    for part, weights in zip(
        [model.left, model.right, *model.blocks], maps.values(), strict=True
    ):
        np.testing.assert_allclose(
            weights, weights_of(part.attention, x), atol=1e-6
        )
        x = part(x)
    _, maps = get_attention_weights(model, X, layers="block*/att")
    assert len(maps) == 3


class OtherArguments(layers.MultiHeadAttention):
    def call(self, query, value, key=None, **kwargs):
        return super().call(query, value, key=key, **kwargs)


class OwnSoftmax(layers.MultiHeadAttention):
    def call(self, query, value, key=None):
        scores = ops.einsum("btd,bsd->bts", query, value)
        return ops.matmul(ops.softmax(scores), value)


class Additive(layers.AdditiveAttention):
    def call(self, inputs, **kwargs):
        return super().call(inputs, **kwargs)


@pytest.mark.every_backend
def test_subclasses_are_read_whatever_their_call_looks_like():
    layer = OtherArguments(2, 4, name="p")
    _, maps = get_attention_weights(layer, X, X)
    np.testing.assert_allclose(maps["p"], weights_of(layer, X), atol=1e-6)

    layer = OwnSoftmax(2, 4, name="p")
    outputs, maps = get_attention_weights(layer, X, X)
    np.testing.assert_allclose(
        maps["p"][:, 0] @ X, to_numpy(outputs), atol=1e-5
    )

    layer = Additive(name="p")
    outputs, maps = get_attention_weights(layer, [X, X])
    np.testing.assert_allclose(
        maps["p"][:, 0] @ X, to_numpy(outputs), atol=1e-5
    )


def attend_by_hand(x):
    scores = ops.einsum("btd,bsd->bts", x, x)
    return ops.matmul(ops.softmax(scores), x)


class ByHand(keras.Layer):
    def call(self, x):
        return attend_by_hand(x)


def beside_a_known_one(part):
    x = keras.Input((5, 8))
    return keras.Model(x, attention()(part(x), x), name="beside")


@pytest.mark.parametrize(
    ("part", "named"),
    [
        (layers.Lambda(attend_by_hand, name="lambda"), "lambda"),
        (ByHand(name="by_hand"), "by_hand"),
        (attend_by_hand, "beside"),  # operations of the model itself
        (
            lambda x: layers.Dot((2, 1))(
                [layers.Softmax()(layers.Dot((2, 2))([x, x])), x]
            ),
            "beside",
        ),
    ],
)
def test_what_looks_like_attention_is_named_beside_a_known_one(part, named):
    model = beside_a_known_one(part)
    with pytest.warns(UserWarning, match=f"{named}: its softmax looks like"):
        outputs, maps = get_attention_weights(model, X)
    assert list(maps) == ["attention"]
    assert list(maps.skipped) == [named] and named in repr(maps)
    np.testing.assert_array_equal(to_numpy(outputs), to_numpy(model(X)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # one who chooses is not told of others
        get_attention_weights(model, X, layers=["attention"])


class ChannelAttention(keras.Layer):
    """Weights of features, not of keys."""

    def __init__(self, **options):
        super().__init__(**options)
        self.dense = layers.Dense(8)

    def call(self, x):
        return x * ops.softmax(self.dense(ops.mean(x, 1, keepdims=True)))


class FusedAttention(keras.Layer):
    """Keys of fewer heads than the queries, in Keras's fused operation."""

    def call(self, x, allowed=None, bias=None, **options):
        query = ops.reshape(x, (2, 5, 4, 2))
        key, value = query[:, :, :2], query[:, :, 2:]
        return ops.dot_product_attention(
            query, key, value, mask=allowed, bias=bias, **options
        )


MASK = np.random.default_rng(1).random((2, 1, 5, 5)) < 0.6
MASK[0, 0, 3] = False


@pytest.mark.every_backend
@needs_fewer_key_heads
@pytest.mark.parametrize(
    "call",
    [
        {},
        {"is_causal": True},
        {"allowed": MASK, "is_causal": True},
        {"allowed": MASK, "scale": 0.3},
        {"scale": 1.7, "bias": draw(2, 4, 5, 5)},
    ],
    ids=lambda call: " ".join(call) or "plain",
)
def test_the_weights_of_the_fused_operation_are_formed_beside_it(call):
    layer = FusedAttention(name="fused")
    outputs, maps = get_attention_weights(layer, X, **call)
    np.testing.assert_array_equal(to_numpy(outputs), to_numpy(layer(X, **call)))
    assert maps["fused"].shape == (2, 4, 5, 5)
    value = np.repeat(X.reshape(2, 5, 4, 2)[:, :, 2:], 2, axis=2)
    np.testing.assert_allclose(
        np.einsum("bhts,bshk->bthk", maps["fused"], value),
        to_numpy(outputs),
        atol=1e-5,
    )


class BackendSoftmaxAttention(keras.Layer):
    def call(self, x):
        scores = ops.exp(ops.einsum("btd,bsd->bts", x, x) / 8)
        return ops.matmul(scores / ops.sum(scores, -1, keepdims=True), x)


def test_weights_of_features_are_not_taken_for_a_map():
    model = beside_a_known_one(ChannelAttention(name="channels"))
    with pytest.warns(UserWarning, match="channels: .*not run over positions"):
        _, maps = get_attention_weights(model, X)
    assert list(maps) == ["attention"]


class PictureAttention(keras.Layer):
    def call(self, picture):
        x = ops.reshape(picture, (2, 12, 12))  # positions by features
        return attend_by_hand(x)


def test_the_positions_of_a_picture_stand_on_two_axes():
    """Here there are as many of them as features."""
    picture = draw(2, 3, 4, 12)
    _, maps = get_attention_weights(PictureAttention(name="picture"), picture)
    assert maps["picture"].shape == (2, 1, 12, 12)


def test_attention_without_a_softmax_of_keras_is_named():
    model = beside_a_known_one(BackendSoftmaxAttention(name="own"))
    with pytest.warns(UserWarning, match="own: no softmax of Keras"):
        _, maps = get_attention_weights(model, X)
    assert list(maps) == ["attention"]


def test_a_classifier_is_not_taken_for_attention():
    x = keras.Input((5, 8))
    y = layers.Dense(5, activation="softmax")(attention()(x, x))
    y = layers.Activation("softmax")(layers.Dense(7)(y))
    _, maps = get_attention_weights(keras.Model(x, y), X)
    assert list(maps) == ["attention"] and not maps.skipped


class AttentionMaskMaker(keras.Layer):
    def call(self, x):
        return x


def test_what_makes_masks_is_not_taken_for_attention():
    _, maps = get_attention_weights(beside_a_known_one(AttentionMaskMaker()), X)
    assert list(maps) == ["attention"] and not maps.skipped


class SelfAttentionClassifier(keras.Model):
    def __init__(self):
        super().__init__()
        self.attention = attention()
        self.dense = layers.Dense(11)

    def call(self, x):
        return ops.softmax(self.dense(self.attention(x, x)))


def test_a_model_with_attention_in_its_name_keeps_its_classifier():
    _, maps = get_attention_weights(SelfAttentionClassifier(), X)
    assert list(maps) == ["attention"] and not maps.skipped


class MiniAttention(keras.Layer):
    """A softmax of its own in a Lambda, over heads that share keys."""

    def __init__(self, **options):
        super().__init__(**options)
        self.softmax = layers.Lambda(lambda x: ops.softmax(x, axis=-1))

    def call(self, x):
        heads = ops.reshape(x, (2, 5, 2, 2, 2))
        scores = ops.einsum("btghk,bsghk->bghts", heads, heads)
        weights = self.softmax(scores)
        return ops.einsum("bghts,bsghk->btghk", weights, heads)


@pytest.mark.every_backend
def test_heads_that_share_keys_are_heads():
    layer = MiniAttention(name="mini")
    outputs, maps = get_attention_weights(layer, X)
    assert maps["mini"].shape == (2, 4, 5, 5)
    heads = X.reshape(2, 5, 4, 2)
    np.testing.assert_allclose(
        np.einsum("bhts,bshk->bthk", maps["mini"], heads),
        to_numpy(outputs).reshape(2, 5, 4, 2),
        atol=1e-6,
    )


class Selves(keras.Layer):
    def __init__(self, **options):
        super().__init__(**options)
        self.attention = attention()

    def build(self, shape):
        self.attention.build(shape, shape)

    def call(self, x):
        return self.attention(x, x)


def test_each_step_of_time_distributed_has_its_map():
    model = layers.TimeDistributed(Selves(name="self"))
    data = draw(2, 3, 5, 8)
    _, maps = get_attention_weights(model, data)
    path = "self/attention"
    assert list(maps) == [path, f"{path}#2", f"{path}#3"]
    layer = model.layer.attention
    for step, weights in enumerate(maps.values()):
        np.testing.assert_allclose(
            weights, weights_of(layer, data[:, step]), atol=1e-6
        )


class Cell(keras.Layer):
    """A cell that looks at a memory that it made from nothing but its input."""

    state_size = output_size = 8

    def __init__(self, **options):
        super().__init__(**options)
        self.attention = attention()

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


def test_the_future_is_counted_from_the_last_key():
    """As `causal_mask` does, which serves queries appended to a cache."""
    mask = to_numpy(causal_mask(2, 5))
    allowed = mask / mask.sum(-1, keepdims=True)
    maps = {"decoder": allowed[None, None]}
    assert check_attention_masks(maps, use_causal_mask=True) == []
    maps["decoder"] = np.full((1, 1, 2, 5), 0.2)
    (leak,) = check_attention_masks(maps, use_causal_mask=True)
    assert leak.mass == pytest.approx(0.2)


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


@pytest.mark.skipif(keras.backend.backend() != "torch", reason="torch's")
def test_the_generator_of_torch_is_left_as_the_call_leaves_it():
    import torch

    class DropsAttention(keras.Layer):
        def call(self, x):
            scores = ops.einsum("btd,bsd->bts", x, x)
            weights = keras.random.dropout(ops.softmax(scores), 0.5)
            return ops.matmul(weights, x)

    def draw_after(run):
        layer = DropsAttention()
        layer(X)
        torch.manual_seed(3)
        run(layer)
        return float(torch.rand((), device=ops.ones(()).device))

    def capture(layer):
        with pytest.raises(ValueError, match="when it is run again"):
            get_attention_weights(layer, X)

    assert draw_after(lambda layer: layer(X)) == draw_after(capture)


@pytest.mark.skipif(keras.backend.backend() != "torch", reason="torch's")
def test_a_module_of_torch_is_named():
    import torch

    inside = torch.nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)
    model = keras.Sequential([keras.layers.TorchModuleWrapper(inside), Block()])
    with pytest.warns(UserWarning, match="a module of torch, not a layer"):
        _, maps = get_attention_weights(model, X)
    assert list(maps) == ["block/att"] and len(maps.skipped) == 1


@pytest.mark.every_backend
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_pictures_and_statistics_take_what_a_layer_returns(dtype):
    """A tensor that may have a gradient, of any dtype."""
    _, weights = attention(dtype=dtype)(X, X, return_attention_scores=True)
    map_of_one = weights[0, 0]
    view_attention({"attention": weights})
    plot_attention(map_of_one)
    animate_attention([map_of_one, map_of_one])
    plot_attention_grid({"attention": weights})
    plot_entropy({"attention": weights})
    show_heatmaps(weights, "Keys", "Queries")
    mask = ops.ones((5, 5), "bool")
    assert attention_entropy(weights, mask=mask, normalize=True).shape == (
        *(2, 2, 5),
    )
    assert attention_distance(weights).shape == (2, 2, 5)
    assert attention_rollout([weights]).shape[-2:] == (5, 5)
    tokens = np.ones((2, 5), "bool")
    assert not check_attention_masks({"attention": weights}, key_mask=tokens)
    plt.close("all")
