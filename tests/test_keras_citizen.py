"""Each layer used as those of `keras.layers` are, by Keras's own tests too."""

import inspect
import warnings

from contract import to_numpy
import d2l_attention
import keras
from keras.src import testing
from layers import (
    ARGUMENTS,
    DECODERS,
    GRAPHS,
    OWN_PATTERN,
    POSITION_WISE,
    SELF_ATTENTION,
    make,
    public_layers,
)
import numpy as np
import pytest

ONE_INPUT = {**OWN_PATTERN, **POSITION_WISE, **SELF_ATTENTION}
SHAPES = {
    **{name: {"query_shape": (2, 5, 4)} for name in ONE_INPUT},
    **{
        name: {"query_shape": (2, 5, 4), "key_shape": (2, 3, 4)}
        for name in DECODERS
    },
    "AddNorm": {"x_shape": (2, 5, 4), "y_shape": (2, 5, 4)},
    "ContextAttention": {"query_shape": (2, 5, 4), "context_shape": (2, 5, 3)},
    "ContextGate": {"x_shape": (2, 5, 2, 3), "context_shape": (2, 5, 4)},
    "MovingBaseline": {"reward_shape": (3,)},
    **{name: {"x_shape": (5, 4)} for name in GRAPHS},
}
CROSS = {
    "query_shape": (2, 5, 4),
    "key_shape": (2, 3, 4),
    "value_shape": (2, 3, 6),
}
NO_FLOAT_GRADIENT = {"ContextGate", "MovingBaseline"}


@pytest.fixture(autouse=True)
def the_same_weights_each_time():
    keras.utils.set_random_seed(0)


class LayerTest(testing.TestCase):
    def runTest(self):
        """unittest asks for a test method by name."""


def run_layer_test(name, shapes, **options):
    if len(shapes) == 1:
        (shapes,) = shapes.values()
    else:  # Keras's own tests of several inputs leave it out too
        options["run_training_check"] = False
    LayerTest().run_layer_test(
        public_layers()[name], ARGUMENTS[name], input_shape=shapes, **options
    )


def test_every_public_layer_is_listed():
    assert {*public_layers()} == {*ARGUMENTS}
    assert len(ARGUMENTS) == 34


@pytest.mark.filterwarnings(
    "ignore:.shuffle=True. was passed",
    "ignore:The model does not have any trainable weights",
    "ignore:Gradients do not exist",  # of Longformer without global tokens
)
@pytest.mark.parametrize("name", [x for x in ARGUMENTS if x not in GRAPHS])
def test_keras_s_own_layer_test(name):
    options = {}
    if name in NO_FLOAT_GRADIENT:
        options["run_training_check"] = False
    run_layer_test(name, SHAPES[name], **options)


@pytest.mark.parametrize("name", SELF_ATTENTION)
def test_keras_s_own_layer_test_with_key_and_value(name):
    shapes = {**CROSS, "value_shape": (2, 3, 4)}
    run_layer_test(name, shapes)


@pytest.mark.parametrize("name", GRAPHS)
def test_keras_s_own_layer_test_of_a_graph(name):
    adjacency = np.ones((5, 5), "bool")
    LayerTest().run_layer_test(
        public_layers()[name],
        ARGUMENTS[name],
        input_shape=(5, 4),
        call_kwargs={"adjacency": adjacency},
        run_training_check=False,  # it calls without the adjacency
    )


@pytest.mark.parametrize("name", [x for x in ARGUMENTS if x not in GRAPHS])
def test_the_declared_shape_is_the_real_one(name):
    """By `compute_output_shape`, for a known and an unknown batch."""
    layer, shapes = make(name), SHAPES[name]
    inputs = {
        key.removesuffix("_shape"): np.ones(shape, "float32")
        for key, shape in shapes.items()
    }
    first, *rest = inputs
    if name in ONE_INPUT:
        declared = layer.compute_output_shape((2, 5, 4))
        unknown = layer.compute_output_shape((None, None, 4))
        output = layer(inputs["query"])
    else:
        declared = layer.compute_output_shape(**shapes)
        unknown = None
        output = layer(inputs[first], **{x: inputs[x] for x in rest})
    outputs = output if isinstance(output, tuple) else (output,)
    declared = declared if isinstance(output, tuple) else (declared,)
    assert [tuple(x.shape) for x in outputs] == [tuple(x) for x in declared]
    if unknown is not None:
        assert len(unknown) == len(declared[0])
        assert unknown[0] is None
        assert unknown[-1] == declared[0][-1]


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_s_declared_shapes_are_the_real_ones(name):
    edges = np.array([[0, 1], [2, 2], [3, 4]], "int32")
    for concat in (True, False):
        layer = public_layers()[name](2, 3, concat=concat)
        x = np.ones((5, 4), "float32")
        output, weights = layer(x, edges=edges, return_attention_scores=True)
        assert layer.compute_output_shape((5, 4)) == tuple(output.shape)
        symbolic, of_edges = layer(
            keras.KerasTensor((5, 4)),
            edges=keras.KerasTensor((3, 2), "int32"),
            return_attention_scores=True,
        )
        assert symbolic.shape == tuple(output.shape)
        assert of_edges.shape == tuple(weights.shape)


@pytest.mark.parametrize("name", ONE_INPUT)
def test_runs_in_a_sequential_model_and_over_time(name):
    layer = make(name)
    model = keras.Sequential([layer])
    shape = model.compute_output_shape((None, 5, 4))
    x = np.random.default_rng(0).normal(size=(3, 2, 5, 4)).astype("float32")
    assert tuple(model(x[0]).shape)[1:] == shape[1:]
    over_time = keras.layers.TimeDistributed(make(name))
    output = over_time(x)
    assert tuple(output.shape) == over_time.compute_output_shape(x.shape)


@pytest.mark.parametrize("name", ONE_INPUT)
def test_clones_alone_and_takes_an_empty_batch(name):
    inputs = keras.Input((5, 4))
    model = keras.Model(inputs, make(name)(inputs))
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    x = np.random.default_rng(0).normal(size=(2, 5, 4)).astype("float32")
    np.testing.assert_array_equal(to_numpy(model(x)), to_numpy(clone(x)))
    empty = model(x[:0])
    assert tuple(empty.shape) == (0, *model.output_shape[1:])


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="a SavedModel"
)
@pytest.mark.parametrize("name", ONE_INPUT)
def test_exports_as_a_saved_model(name, tmp_path):
    import tensorflow as tf

    inputs = keras.Input((5, 4))
    model = keras.Model(inputs, make(name)(inputs))
    model.export(tmp_path / "model", verbose=False)
    x = np.random.default_rng(0).normal(size=(2, 5, 4)).astype("float32")
    loaded = tf.saved_model.load(tmp_path / "model")
    served = loaded.serve(x)
    np.testing.assert_allclose(
        served.numpy(), to_numpy(model(x)), rtol=1e-5, atol=1e-6
    )


@pytest.mark.skipif(
    keras.backend.backend() != "jax",
    reason="on TensorFlow Keras's own MultiHeadAttention fails there too",
)
@pytest.mark.parametrize(
    "name",
    [
        *(x for x in SELF_ATTENTION if x != "HardAttention"),
        *OWN_PATTERN,
        "decoder",
    ],  # hard attention must know whether it trains, as dropout must
)
def test_trains_in_a_remat_scope(name):
    """Keras traces every argument of a rematerialized call."""
    inputs = keras.Input((5, 4))
    with keras.RematScope(mode="full"):
        if name == "decoder":
            output = make("TransformerDecoder")(inputs, key=inputs)
        else:
            output = make(name)(inputs)
    model = keras.Model(inputs, output)
    model.compile("sgd", "mse")
    x = np.random.default_rng(0).normal(size=(2, 5, 4)).astype("float32")
    before = model.get_weights()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Gradients do not exist")
        model.fit(x, np.ones(output.shape[1:])[None].repeat(2, 0), verbose=0)
    if before and name != "NWKernelRegression":
        changed = [
            np.abs(a - b).max() > 0
            for a, b in zip(before, model.get_weights(), strict=True)
            if a.size
        ]
        assert any(changed)


def test_no_layer_warns_that_it_destroys_a_mask():
    ids = keras.Input((5,), dtype="int32")
    h = keras.layers.Embedding(7, 4, mask_zero=True)(ids)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoded = make("TransformerEncoder")(h)
        x = make("TransformerEncoderBlock")(encoded)
        y = make("TransformerDecoder")(h, key=encoded)
        y = make("TransformerDecoderBlock")(y, key=x)
        y = make("CausalBlock")(y)
        y = make("ContextAttention")(y, context=h)
        model = keras.Model(ids, keras.layers.Dense(3)(y))
        model.compile("sgd", "mse")
        data = np.array([[3, 1, 4, 0, 0], [2, 5, 6, 1, 0]])
        model.fit(data, np.ones((2, 5, 3)), verbose=0)


@pytest.mark.backend_free
@pytest.mark.parametrize("name", ARGUMENTS)
def test_sizes_of_numpy_are_sizes(name):
    arguments = {
        key: np.int64(x) if type(x) is int and key != "seed" else x
        for key, x in ARGUMENTS[name].items()
    }
    layer = public_layers()[name](**arguments)
    config = layer.get_config()
    for key in arguments:
        assert type(config[key]) is not np.int64
    assert type(layer).from_config(config).get_config() == config


SIZES = {
    "attention": ["num_heads", "key_dim"],
    "block": ["dim", "num_heads", "ffn_dim"],
    "stack": ["dim", "num_layers", "num_heads", "ffn_dim"],
}


@pytest.mark.backend_free
@pytest.mark.parametrize("name", ARGUMENTS)
def test_what_stands_behind_the_sizes_is_given_by_name(name):
    signature = inspect.signature(public_layers()[name].__init__)
    first, *arguments = signature.parameters.values()
    positional = [
        x.name for x in arguments if x.kind is x.POSITIONAL_OR_KEYWORD
    ]
    assert first.name == "self"
    assert {*positional} <= {
        *("num_heads", "num_kv_heads", "key_dim", "units", "max_length"),
        *("rank", "window", "page_size", "chunk_size", "num_buckets"),
        *("num_features", "dim", "num_layers", "ffn_dim", "output_dim"),
    }
    for sizes in SIZES.values():
        if {*sizes} <= {*positional}:
            assert [x for x in positional if x in sizes] == sizes
    assert not any(x.kind is x.VAR_POSITIONAL for x in arguments)


@pytest.mark.backend_free
@pytest.mark.parametrize(
    "name",
    [
        *ARGUMENTS,
        *("BahdanauSeq2Seq", "FixedContextSeq2Seq", "RNNSearch"),
        *("Transformer", "LanguageModel", "PointerNetwork"),
        "HierarchicalAttentionNetwork",
    ],
)
def test_help_shows_a_signature_and_sends_nobody_to_a_private_class(name):
    """That each argument has its entry is asked in `test_doctests`."""
    found = getattr(d2l_attention, name)
    assert "args" not in inspect.signature(found).parameters
    assert "see `_" not in inspect.getdoc(found)


@pytest.mark.parametrize(
    "name",
    ["BahdanauSeq2Seq", "FixedContextSeq2Seq", "RNNSearch"],
)
def test_embeddings_may_have_a_size_of_their_own(name, tmp_path):
    layers = {} if name == "RNNSearch" else {"num_layers": 2}
    model = getattr(d2l_attention, name)(11, 13, 6, embedding_dim=5, **layers)
    inputs = {
        "source": np.array([[3, 4, 0], [5, 2, 7]]),
        "target": np.array([[1, 3], [1, 4]]),
    }
    logits = model(inputs)
    assert model.source_embedding.embeddings.shape == (11, 5)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(to_numpy(again(inputs)), to_numpy(logits))


def test_a_transformer_has_no_embeddings_of_another_size():
    with pytest.raises(ValueError, match="embedding_dim"):
        d2l_attention.Transformer(11, 13, 6, 1, 2, embedding_dim=5)


@pytest.mark.parametrize(
    "name", ["FlashAttention", "PageLocalAttention", "ReformerAttention"]
)
def test_dropout_without_weights_is_refused_by_name(name):
    with pytest.raises(ValueError, match="dropout"):
        make(name, dropout=0.1)


@pytest.mark.parametrize("name", [*SELF_ATTENTION, *DECODERS])
def test_a_batch_of_one_does_not_stand_for_two(name):
    query, key = (np.ones((b, 5, 4), "float32") for b in (2, 1))
    with pytest.raises(ValueError, match=r"same batch.*\(2, 5, 4\).*\(1, 5, 4"):
        make(name)(query, key=key)
    with pytest.raises(ValueError, match="same batch"):
        make(name)(
            keras.KerasTensor((2, 5, 4)), key=keras.KerasTensor((1, 5, 4))
        )


@pytest.mark.parametrize("name", [*SELF_ATTENTION, *OWN_PATTERN])
def test_a_tensor_with_too_few_axes_is_named(name):
    with pytest.raises(ValueError, match=r"three axes.*\(5, 4\)"):
        make(name)(np.ones((5, 4), "float32"))


def test_what_a_model_does_not_understand_is_named():
    ids = np.ones((2, 3), "int32")
    for model in (
        d2l_attention.BahdanauSeq2Seq(5, 5, 4, 1),
        d2l_attention.RNNSearch(5, 5, 4),
        d2l_attention.Transformer(5, 5, 4, 1, 2),
    ):
        with pytest.raises(ValueError, match="dict of 'source' and 'target'"):
            model(ids)
        with pytest.raises(ValueError, match=r"Received: \['source'\]"):
            model({"source": ids})
    with pytest.raises(ValueError, match="dict of 'items'"):
        d2l_attention.PointerNetwork(4)(np.ones((2, 3, 2), "float32"))
    network = d2l_attention.HierarchicalAttentionNetwork(5, 4, 3, 2)
    with pytest.raises(ValueError, match=r"\(B, sentences, words\).*\(2, 3\)"):
        network(ids)
    model = d2l_attention.LanguageModel(5, 4, 1, 2)
    with pytest.raises(ValueError, match=r"\(B, T\).*\(3,\)"):
        model(ids[0])


def test_ids_are_embedded_before_the_model_is_built():
    model = d2l_attention.LanguageModel(5, 4, 1, 2)
    embedded = model.embed(np.array([[1, 2, 3]]))
    assert tuple(embedded.shape) == (1, 3, 4)
    logits = model(np.array([[1, 2, 3]]))
    assert tuple(logits.shape) == (1, 3, 5)


def test_keys_of_reformer_are_its_queries():
    layer = make("ReformerAttention")
    x = np.random.default_rng(0).normal(size=(2, 5, 4)).astype("float32")
    layer(x)
    np.testing.assert_array_equal(
        to_numpy(layer.project_key(x)), to_numpy(layer.project_query(x))
    )


@pytest.mark.backend_free
@pytest.mark.parametrize("name", ARGUMENTS)
def test_no_layer_inherits_a_method_that_only_raises(name):
    layer = make(name)
    for method in ("score", "attend", "mix", "project_key"):
        if hasattr(layer, method):
            source = inspect.getsource(getattr(layer, method))
            assert "raise NotImplementedError" not in source, method
    asked = inspect.signature(layer.call).parameters
    if "return_attention_scores" not in asked:
        assert not hasattr(layer, "attend"), "there are no weights"
