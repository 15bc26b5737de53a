"""A layer that forms no weights is read by identity values, if it is named."""

from contract import to_numpy
from d2l_attention import (
    AttentionBlock,
    BlockLanguageModel,
    FlashAttention,
    GatedDeltaAttention,
    LinformerAttention,
    LongformerAttention,
    MultiHeadAttention,
    PageLocalAttention,
    PerformerAttention,
    ReformerAttention,
    linear_attention_weights,
)
from d2l_attention.heatmaps import (
    get_attention_gradients,
    get_attention_weights,
)
from d2l_attention.layers.longformer import longformer_mask
import keras
from keras import ops
import numpy as np
import pytest

pytestmark = pytest.mark.every_backend

X = np.random.default_rng(0).normal(size=(2, 16, 8)).astype("float32")
REAL = np.arange(16) < np.array([[16], [11]])


@pytest.fixture(autouse=True)
def seed():
    keras.utils.set_random_seed(0)


def dense_like(layer):
    dense = MultiHeadAttention(2, 4)
    dense(X)
    layer(X)
    dense.set_weights(layer.get_weights()[:4])
    return dense


@pytest.mark.parametrize("options", [{}, {"use_causal_mask": True}])
def test_flash_gives_the_weights_of_dense_attention(options):
    layer = FlashAttention(2, 4, name="flash", block_size=4)
    dense = dense_like(layer)
    options |= {"key_mask": REAL}
    plain = layer(X, X, **options)
    output, maps = get_attention_weights(
        layer, X, X, layers=["flash"], **options
    )
    _, weights = dense(X, X, return_attention_scores=True, **options)
    np.testing.assert_array_equal(to_numpy(output), to_numpy(plain))
    np.testing.assert_allclose(maps["flash"], to_numpy(weights), atol=1e-6)


def test_a_window_gives_the_weights_of_its_mask():
    layer = LongformerAttention(2, 4, window=2)
    dense = dense_like(layer)
    mask = longformer_mask(16, 2)
    _, weights = dense(X, attention_mask=mask, return_attention_scores=True)
    _, maps = get_attention_weights(layer, X, layers="*")
    [found] = maps.values()
    np.testing.assert_allclose(found, to_numpy(weights), atol=1e-6)


@pytest.mark.parametrize(
    "layer",
    [
        PerformerAttention(2, 4, num_features=8),
        ReformerAttention(2, 4, chunk_size=4, num_buckets=4),
        PageLocalAttention(2, 4, page_size=4),
    ],
)
def test_the_weights_times_the_values_are_the_output(layer):
    output, maps = get_attention_weights(layer, X, layers="*")
    [weights] = maps.values()
    value = ops.convert_to_numpy(layer.project_value(X))
    heads = np.einsum("bhts,bshv->bthv", weights, value).astype("float32")
    expected = to_numpy(layer.join_heads(heads))
    np.testing.assert_allclose(to_numpy(output), expected, atol=1e-5)


def test_nobody_who_did_not_ask_waits_for_it():
    model = keras.Sequential(
        [FlashAttention(2, 4, name="flash"), MultiHeadAttention(2, 4, name="a")]
    )
    model(X)
    with pytest.warns(UserWarning, match="Named by `layers=`"):
        _, maps = get_attention_weights(model, X)
    assert list(maps) == ["a"] and list(maps.skipped) == ["flash"]


def test_what_it_cannot_read_is_named():
    layer = FlashAttention(1, 2)
    long = np.zeros((1, 1025, 2), "float32")
    with pytest.raises(ValueError, match="1025 keys; up to 1024.*shorten"):
        get_attention_weights(layer, long, layers="*")

    class Cached(FlashAttention):
        def call(self, query, value=None, key=None):
            return self.attend(self.project_query(query), value, value)[0]

    layer = Cached(2, 4)
    layer.build(X.shape)
    with pytest.raises(ValueError, match="did not call `project_value`"):
        get_attention_weights(layer, X, layer.project_key(X), layers="*")
    layer = LongformerAttention(2, 4, window=1)  # has values of two kinds
    with pytest.raises(ValueError, match="does not run with identity"):
        get_attention_weights(layer, X, layers="*", global_positions=[0])


class Squared(FlashAttention):
    def attend(self, query, key, value, mask=None, **options):
        return super().attend(query, key, value**2, mask, **options)


class ScaledByValues(FlashAttention):
    def attend(self, query, key, value, mask=None, **options):
        key = key * ops.norm(value, axis=-1, keepdims=True)
        return super().attend(query, key, value, mask, **options)


class SharperInOneHead(FlashAttention):
    """Its second head is the sharper, the more features values have."""

    def attend(self, query, key, value, mask=None, **options):
        sharper = np.array([[1.0], [value.shape[-1]]], "float32")
        query = ops.multiply(query, sharper)
        return super().attend(query, key, value, mask, **options)


@pytest.mark.parametrize("scale", [1.0, 5e-3, 0.0])
@pytest.mark.parametrize("kind", [Squared, ScaledByValues, SharperInOneHead])
def test_what_is_no_weighted_sum_is_named_however_small_its_values(kind, scale):
    layer = kind(2, 4)
    layer(X)
    kernel = ops.convert_to_numpy(layer.value_layer.kernel)
    scales = np.repeat([1.0, scale], 4)  # of the values of both heads
    layer.value_layer.kernel.assign(kernel * scales)
    with pytest.raises(ValueError, match="not a weighted sum"):
        get_attention_weights(layer, X, layers="*")


class Stateful(FlashAttention):
    """It counts its calls in two ways, and blurs its queries a little."""

    noise = 1e-4

    def build(self, query_shape, value_shape=None, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        self.calls = 0
        self.counted = self.add_weight((), "zeros", trainable=False)
        self.random = keras.random.SeedGenerator(3)

    def attend(self, query, key, value, mask=None, **options):
        self.calls += 1
        self.counted.assign_add(1.0)
        noise = keras.random.normal(query.shape, seed=self.random)
        query = query + self.noise * noise
        return super().attend(query, key, value, mask, **options)

    def state(self):
        variables = self.counted, self.random.state
        return self.calls, *map(ops.convert_to_numpy, variables)


def test_asking_a_layer_leaves_its_state_and_what_it_will_draw():
    outputs, states = [], []
    for ask in (False, True):
        layer = Stateful(2, 4, name="noisy")
        keras.utils.set_random_seed(0)
        layer.build(X.shape)

        def twice(x, layer=layer):
            return layer(layer(x))

        if ask:
            with pytest.warns(UserWarning, match="Not joined"):
                output, maps = get_attention_weights(
                    layer, X, layers="*", run=twice
                )
            assert list(maps) == ["noisy", "noisy#2"]
        else:
            output = twice(X)
        outputs.append(ops.convert_to_numpy(output))
        states.append(layer.state())
    np.testing.assert_array_equal(*outputs)
    for plain, asked in zip(*states, strict=True):
        np.testing.assert_array_equal(asked, plain)


def test_a_layer_that_gives_another_output_when_it_runs_again_is_named():
    layer = Stateful(2, 4)
    layer.noise = 10.0
    with pytest.raises(ValueError, match="another output"):
        get_attention_weights(layer, X, layers="*")


def test_signed_weights_are_read_with_their_signs():
    layer = LinformerAttention(2, 4, max_length=16, rank=4)
    _, maps = get_attention_weights(layer, X, layers="*")
    [weights] = maps.values()
    assert weights.min() < -0.01
    value = ops.convert_to_numpy(layer.project_value(X))
    heads = np.einsum("bhts,bshv->bthv", weights, value).astype("float32")
    expected = to_numpy(layer.join_heads(heads))
    np.testing.assert_allclose(to_numpy(layer(X)), expected, atol=1e-5)


def test_linear_attention_in_a_block_is_read_if_it_is_named():
    model = BlockLanguageModel(
        12, 8, [AttentionBlock(GatedDeltaAttention(2, 4), 8, 16, name="block")]
    )
    ids = np.array([[1, 2, 3, 4, 5, 6]])
    model(ids)
    with pytest.raises(ValueError, match="Named by .*linear_attention_weights"):
        get_attention_weights(model, ids)
    path = "block/self_attention"
    _, maps = get_attention_weights(model, ids, layers=[path])
    x, layer = model.embed(ids), model.blocks[0].self_attention
    expected = linear_attention_weights(
        layer.project_query(x) / 2.0,
        layer.project_key(x),
        layer.log_decay(x),
        layer.strength(x),
    )
    np.testing.assert_allclose(maps[path], to_numpy(expected), atol=1e-6)
    assert maps[path].min() < 0


def test_there_are_no_gradients_by_weights_that_are_not_formed():
    model = keras.Sequential(
        [FlashAttention(2, 4, name="flash"), MultiHeadAttention(2, 4, name="a")]
    )
    model(X)
    with pytest.raises(ValueError, match="no gradients by them"):
        get_attention_gradients(
            model,
            X,
            chosen_output=lambda y: ops.sum(y, (1, 2)),
            layers=["flash"],
        )


class CountingAttention(FlashAttention):
    """It counts its calls, notes them in a list, and has a loss."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.count = self.add_weight(
            shape=(), initializer="zeros", trainable=False
        )
        self.calls = [0]

    def call(self, query, value=None, key=None):
        self.count.assign_add(1)
        self.calls.append(1)
        self.add_loss(ops.mean(query))
        return super().call(query, value, key=key)


def test_a_layer_is_left_as_one_call_leaves_it():
    layer = CountingAttention(2, 4, name="counting")
    layer(X)
    calls = layer.calls
    get_attention_weights(layer, X, layers=["counting"])
    assert float(to_numpy(layer.count)) == 2
    assert layer.calls is calls
    assert calls == [0, 1, 1]
    assert len(layer.losses) == 1
