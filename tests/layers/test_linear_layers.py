"""What the layers of linear cost share: saving, compiling, no n × n tensor."""

from contract import CAN_COMPILE, draw, gradients, to_numpy
from d2l_attention import (
    LinformerAttention,
    LongformerAttention,
    PageLocalAttention,
    PerformerAttention,
    ReformerAttention,
)
import keras
import numpy as np
import pytest

# Longformer's global projections have no gradient without global tokens.
LAYERS = {
    "linformer": lambda **k: LinformerAttention(
        3, 4, max_length=2048, rank=5, value_dim=5, use_bias=True, **k
    ),
    "performer": lambda **k: PerformerAttention(3, 4, 9, seed=0, **k),
    "causal performer": lambda **k: PerformerAttention(3, 4, 9, seed=0, **k),
    "longformer": lambda **k: LongformerAttention(3, 4, window=5, **k),
    "causal longformer": lambda **k: LongformerAttention(
        3, 4, window=5, output_dim=7, **k
    ),
    "page-local": lambda **k: PageLocalAttention(3, 4, page_size=16, **k),
    "causal page-local": lambda **k: PageLocalAttention(
        3, 4, page_size=3, neighbors=2, value_dim=5, **k
    ),
    "reformer": lambda **k: ReformerAttention(
        3, 4, 8, num_buckets=4, num_rounds=2, value_dim=5, seed=0, **k
    ),
    "causal reformer": lambda **k: ReformerAttention(
        3, 4, 8, num_buckets=4, seed=0, **k
    ),
}


def options_of(name):
    """Call arguments of a layer by its name in the table."""
    options = {"use_causal_mask": True} if "causal" in name else {}
    if "longformer" in name:
        options["global_positions"] = [0, 3]
    return options


@pytest.mark.parametrize(
    "name", [x for x in LAYERS if x == "linformer" or "causal" in x]
)
def test_saves_and_compiles(name, tmp_path):
    halved = name in ("causal longformer", "causal reformer")
    dtype = "mixed_float16" if halved else "float32"
    inputs = keras.Input((None, 7))
    layer = LAYERS[name](dtype=dtype)
    options = options_of(name)
    model = keras.Model(inputs, layer(inputs, **options))
    assert model.outputs[0].shape == (None, None, 7)
    compute = dtype.removeprefix("mixed_")
    assert model.outputs[0].dtype == compute
    x = draw(8, 37, 7)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.layers[-1].get_config() == layer.get_config()
    found = to_numpy(model(x))
    np.testing.assert_array_equal(to_numpy(again(x)), found)
    assert found.dtype == compute
    if dtype == "float32":
        model.compile(jit_compile=CAN_COMPILE)
        compiled = model.predict(x, verbose=0)
        np.testing.assert_allclose(compiled, found, atol=1e-5)


@pytest.mark.parametrize("name", LAYERS)
def test_a_subclassed_model_builds_each_weight_once(name):
    """Keras builds it inside a symbolic scope, where values are not known."""

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.attention = LAYERS[name]()

        def call(self, x):
            return self.attention(x, **options_of(name))

    model, alone = Model(), LAYERS[name]()
    model(draw(2, 37, 7))
    alone.build((2, 37, 7))
    paths = [
        [w.path.split("/", n)[n] for w in one.weights]
        for n, one in ((2, model), (1, alone))
    ]
    assert paths[0] == paths[1]


@pytest.mark.parametrize("name", LAYERS)
def test_takes_masks_and_changes_nothing_of_itself(name):
    layer = LAYERS[name]()
    causal = {"use_causal_mask": "causal" in name}
    x, mask = draw(2, 37, 7), np.arange(37) < np.array([[20], [37]])
    found = to_numpy(layer(x, key_mask=mask, **causal))
    before = dict(vars(layer))
    # Behind the padding nothing moves.
    changed = np.where(mask[..., None], x, 3).astype("float32")
    again = to_numpy(layer(changed, key_mask=mask, **causal))
    np.testing.assert_array_equal(found[mask], again[mask])
    assert all(vars(layer)[k] is before[k] for k in before)
    nothing = to_numpy(layer(x, key_mask=np.zeros((2, 37), bool), **causal))
    if not layer.use_bias:
        assert (nothing == 0).all()
    assert np.isfinite(nothing).all()


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_are_finite_and_reach_every_weight(name):
    layer, x = LAYERS[name](), draw(4, 37, 7)
    present = np.arange(37) < np.array([[0], [9], [20], [37]])
    options = options_of(name) | {"key_mask": present}
    direction = draw(*layer(x, **options).shape)
    for weight, gradient in zip(
        layer.trainable_weights,
        gradients(layer, x, options, direction),
        strict=True,
    ):
        gradient = to_numpy(gradient)
        assert np.isfinite(gradient).all(), weight.path
        if not weight.path.endswith("W_k/bias"):  # the same for every key
            assert np.abs(gradient).max() > 0, weight.path


@pytest.mark.parametrize("name", LAYERS)
def test_the_graph_has_no_tensor_of_all_pairs(name):
    """For n tokens, twice as many must not take over twice the numbers."""
    if keras.backend.backend() != "tensorflow":
        pytest.skip("looks into a TensorFlow graph")
    import tensorflow as tf

    layer = LAYERS[name]()
    layer.build((1, None, 7))

    def largest(n):
        causal = "causal" in name
        graph = tf.function(lambda x: layer(x, use_causal_mask=causal))
        graph = graph.get_concrete_function(tf.TensorSpec((1, n, 7), "float32"))
        sizes = [
            tensor.shape.num_elements() or 0
            for operation in graph.graph.get_operations()
            for tensor in operation.outputs
            if tensor.shape.rank is not None
        ]
        return max(sizes)

    assert largest(2048) <= 2.1 * largest(1024)
    assert largest(2048) < 2048 * 2048 / 4
