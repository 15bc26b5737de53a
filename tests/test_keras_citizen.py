"""Each layer used as those of `keras.layers` are, by Keras's own tests too."""

import importlib
import inspect
import warnings

from contract import begin_to_draw, draw, to_numpy
import d2l_attention
from d2l_attention import (
    GraphDotProductAttention,
    MultiHeadAttention,
    selected_block_attention,
)
from d2l_attention.layers.longformer import longformer_mask
from d2l_attention.layers.relative_positions import biased_attention
from d2l_attention.layers.scoring import scaled_dot_product_scores
from every_layer import (
    ARGUMENTS,
    CONTEXT,
    DECODERS,
    GRAPHS,
    MECHANISMS,
    OWN_PATTERN,
    POSITION_WISE,
    SELF_ATTENTION,
    make,
    on_every_backend,
    public_layers,
)
import keras
from keras import ops
from keras.src import testing
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
    "PatchEmbedding": {"x_shape": (2, 4, 6, 3)},
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


@pytest.mark.filterwarnings(
    "ignore:.shuffle=True. was passed",
    "ignore:The model does not have any trainable weights",
    "ignore:Gradients do not exist",  # of Longformer without global tokens
)
@pytest.mark.parametrize(
    "name", on_every_backend(x for x in ARGUMENTS if x not in GRAPHS)
)
def test_keras_s_own_layer_test(name):
    trains = name in MECHANISMS and name not in NO_FLOAT_GRADIENT
    run_layer_test(name, SHAPES[name], run_training_check=trains)


@pytest.mark.parametrize("name", SELF_ATTENTION)
def test_keras_s_own_layer_test_with_key_and_value(name):
    shapes = {**CROSS, "value_shape": (2, 3, 4)}
    run_layer_test(name, shapes)


@pytest.mark.parametrize("name", on_every_backend(GRAPHS))
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


@pytest.mark.every_backend
@pytest.mark.skipif(
    keras.backend.backend() != "jax",
    reason="on TensorFlow Keras's own MultiHeadAttention fails there too",
)
@pytest.mark.parametrize(
    "name",
    ["MultiHeadAttention", "LongformerAttention", "TransformerDecoderBlock"],
)
def test_trains_in_a_remat_scope(name):
    """Keras traces every argument of a rematerialized call."""
    inputs = keras.Input((5, 4))
    with keras.RematScope(mode="full"):
        more = {"key": inputs} if name in DECODERS else {}
        output = make(name)(inputs, **more)
    model = keras.Model(inputs, output)
    model.compile("sgd", "mse", jit_compile=False)
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


@pytest.mark.every_backend
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
        model.compile("sgd", "mse", jit_compile=False)
        data = np.array([[3, 1, 4, 0, 0], [2, 5, 6, 1, 0]])
        model.fit(data, np.ones((2, 5, 3)), verbose=0)


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


def test_a_mask_hides_no_nan_here_nor_in_keras():
    x = np.ones((2, 5, 4), "float32")
    x[1, 3] = np.nan
    seen = np.arange(5) < np.array([[5], [3]])
    ours = MultiHeadAttention(2, 3)(x, key_mask=seen)
    theirs = keras.layers.MultiHeadAttention(2, 3)(x, x, key_mask=seen)
    for output in (ours, theirs):
        finite = np.isfinite(to_numpy(output)).all((1, 2))
        assert finite.tolist() == [True, False]


def test_lora_trains_a_projection_and_leaves_its_kernel():
    x = two_sequences()[0]
    layer = MultiHeadAttention(2, 3)
    model = keras.Sequential([layer])
    before = to_numpy(model(x))
    layer.query_layer.enable_lora(rank=2)
    np.testing.assert_array_equal(to_numpy(model(x)), before)  # B is 0
    kernel = to_numpy(layer.query_layer._kernel)
    model.compile("sgd", "mse", jit_compile=False)
    model.fit(x, before + 1, epochs=2, verbose=0)
    np.testing.assert_array_equal(to_numpy(layer.query_layer._kernel), kernel)
    layer.key_layer.trainable = layer.value_layer.trainable = False
    layer.output_layer.trainable = False
    assert len(layer.trainable_variables) == 2  # A and B
    model.compile("sgd", "mse", jit_compile=False)
    trained = to_numpy(model(x))
    model.fit(x, before + 1, verbose=0)
    assert np.abs(to_numpy(model(x)) - trained).max() > 0


MODELS = {
    "BahdanauSeq2Seq": (11, 13, 6, 1),
    "BlockLanguageModel": (11, 4, [make("AttentionBlock")]),
    "ContrastivePair": (keras.layers.Dense(3), keras.layers.Dense(5), 7),
    "FixedContextSeq2Seq": (11, 13, 6, 1),
    "HierarchicalAttentionNetwork": (11, 6, 5, 3),
    "LanguageModel": (11, 6, 1, 2),
    "PointerNetwork": (6,),
    "RNNSearch": (11, 13, 6, 1),
    "ModernLanguageModel": (11, 8, 1, 2, 7),
    "Transformer": (11, 13, 6, 1, 2),
    "VisionTransformer": (3, 2, 6, 1, 2),
}  # name → sizes
OTHER_VALUES = {  # than the defaults of what is given by name
    "activation": "tanh",
    "alignment_dim": 5,
    "block_size": 3,
    "decay": 0.5,
    "dropout": 0.3,
    "embedding_dim": 5,
    "epsilon": 0.01,
    "ffn_dim": 7,
    "frequencies": [0.5],
    "key_dim": 6,
    "magnitude": 1.5,
    "max_distance": 99,
    "max_length": 17,
    "maxout_dim": 4,
    "neighbors": 2,
    "num_buckets": 8,
    "num_heads": 2,
    "num_kv_heads": 1,
    "num_rounds": 3,
    "num_sinks": 2,
    "output_dim": 7,
    "scale": 0.3,
    "seed": 3,
    "soft_cap": 5.0,
    "units": 5,
    "value_dim": 5,
    "window": 3,
}


def constructor(name):
    """A public class, sizes by position and by name, and its other names."""
    cls = getattr(d2l_attention, name)
    sizes, named = MODELS.get(name, ()), ARGUMENTS.get(name, {})
    arguments = [*inspect.signature(cls).parameters.values()][len(sizes) :]
    options = [
        x.name
        for x in arguments
        if x.kind is not x.VAR_KEYWORD and x.name not in named
    ]
    return cls, sizes, named, options


def other_values(cls, names):
    """For each name a value that is not the constructor's default."""
    defaults = inspect.signature(cls).parameters
    values = {}
    for name in names:
        default = defaults[name].default
        values[name] = (
            not default if isinstance(default, bool) else OTHER_VALUES[name]
        )
        assert values[name] != default, name
    return values


@pytest.mark.parametrize("name", [*ARGUMENTS, *MODELS])
def test_every_constructor_refuses_what_it_does_not_name(name):
    """Also what only a base class or a private function takes."""
    cls, sizes, named, options = constructor(name)
    for unknown in ("units_", "_num_kv_heads", "num_kv_heads", "_dropout"):
        if unknown not in {*options, *named}:
            with pytest.raises((TypeError, ValueError), match=unknown):
                cls(*sizes, **named, **{unknown: 1})


@pytest.mark.parametrize("name", [*ARGUMENTS, *MODELS])
def test_the_config_holds_every_argument(name):
    """What is asked for is in it, and comes back from it."""
    cls, sizes, named, options = constructor(name)
    asked = other_values(cls, options)
    made = cls(*sizes, **named, **asked)
    config = made.get_config()
    assert {*named, *options} <= {*config}
    assert {x: config[x] for x in asked} == asked
    assert cls.from_config(config).get_config() == config


NO_OTHER_OUTPUT = {  # what an option changes instead
    "block_size": "memory",
    "chunk_size": "memory, but for Reformer",
    "decay": "the next mean",
    "max_distance": "buckets behind 16",
    "max_length": "how long a text may be",
    "num_sinks": "a cache",
    "seed": "weights that are copied here",
}
PAIR = {"source": np.array([[3, 1, 4, 1, 5], [9, 2, 6, 5, 0]])}
PAIR["target"] = PAIR["source"][:, ::-1].copy()
MODEL_INPUTS = {
    **dict.fromkeys(("BahdanauSeq2Seq", "FixedContextSeq2Seq"), PAIR),
    **dict.fromkeys(("RNNSearch", "Transformer"), PAIR),
    "ContrastivePair": {"image": np.eye(3, 4), "text": np.eye(3, 5)},
    "HierarchicalAttentionNetwork": np.array([[[3, 1, 4], [5, 2, 0]]]),
    "PointerNetwork": {
        "items": np.eye(3, 2)[None],
        "places": np.array([[2, 0, 1]]),
    },
    "VisionTransformer": np.linspace(0, 1, 48).reshape(1, 4, 4, 3),
}


@pytest.mark.parametrize(
    "name", [x for x in [*ARGUMENTS, *MODELS] if x != "MovingBaseline"]
)
def test_every_option_changes_what_is_computed(name):
    """One that is kept in the config, and handed on to nobody, does not."""
    cls, sizes, named, options = constructor(name)

    def computed(values=None, **asked):
        keras.utils.set_random_seed(0)
        made = cls(*sizes, **named, **asked)
        inputs, others = MODEL_INPUTS.get(name, PAIR["source"]), {}
        if name in ARGUMENTS:
            begin_to_draw(0)
            inputs, *rest = (draw(*shape) for shape in SHAPES[name].values())
            keys = [x.removesuffix("_shape") for x in SHAPES[name]][1:]
            others = dict(zip(keys, rest, strict=True))
        if name in GRAPHS:
            others["adjacency"] = np.tri(5, k=-1, dtype=bool)
        if "training" in inspect.signature(made.call).parameters:
            others["training"] = "dropout" in asked
        if name in ARGUMENTS:
            made.build(*SHAPES[name].values())
        else:
            made(inputs, **others)
        values = values or [0.5 + draw(*w.shape) for w in made.weights]
        if [w.shape for w in made.weights] != [x.shape for x in values]:
            return values, None
        for weight, value in zip(made.weights, values, strict=True):
            if "seed" not in weight.path:
                weight.assign(value)
        outputs = keras.tree.flatten(made(inputs, **others))
        return values, np.concatenate([to_numpy(x).ravel() for x in outputs])

    values, plain = computed()
    if name == "HardAttention":  # reads the key of the highest score
        options.remove("scale")
    options = [x for x in options if x not in NO_OTHER_OUTPUT]
    for option, value in other_values(cls, options).items():
        _, other = computed(values, **{option: value})
        same = other is not None and plain.shape == other.shape
        same = same and np.allclose(plain, other, rtol=1e-4)
        assert not same, f"{option}={value!r} changes nothing"


@pytest.mark.parametrize(
    "name",
    [
        *("TransformerEncoder", "TransformerDecoder"),
        *("Transformer", "LanguageModel"),
    ],
)
def test_what_a_stack_is_asked_for_reaches_its_blocks(name):
    cls, sizes, named, options = constructor(name)
    of_block = {"activation", "dropout", "epsilon", "normalize_first"}
    of_block |= {"num_kv_heads", "use_bias"}
    asked = other_values(cls, [x for x in options if x in of_block])
    assert {"activation", "dropout", "use_bias"} <= {*asked}
    made = cls(*sizes, **named, **asked)
    blocks = [x for x in made._flatten_layers() if x.name.startswith("block_")]
    assert len(blocks) >= 1
    for block in blocks:
        assert {x: block.get_config()[x] for x in asked} == asked


@pytest.mark.parametrize(
    "name",
    [x for x in [*ARGUMENTS, *MODELS] if "epsilon" in constructor(x)[3]],
)
def test_every_norm_has_the_epsilon_that_was_asked_for(name):
    """That of the queries, and that after the last block, too."""
    cls, sizes, named, _ = constructor(name)
    made = cls(*sizes, **named, epsilon=0.25)
    if name in SHAPES:
        made.build(*SHAPES[name].values())
    norms = [x for x in made._flatten_layers() if hasattr(x, "epsilon")]
    assert len(norms) > 1
    assert {x.epsilon for x in norms} == {0.25}


@pytest.mark.parametrize("name", MODELS)
def test_what_models_answer_is_of_float32(name):
    """In half precision many of a thousand words would have equal logits."""
    cls, sizes, _, _ = constructor(name)
    inputs = MODEL_INPUTS.get(name, PAIR["source"])
    for output in keras.tree.flatten(cls(*sizes, dtype="float16")(inputs)):
        assert keras.backend.standardize_dtype(output.dtype) == "float32"


@pytest.mark.parametrize(
    ("name", "sizes", "shape", "weight", "deviation"),
    [
        ("AttentionPooling", [1009], (2, 5, 3), "q", 0.1),
        ("LinformerAttention", [2, 3, 53, 101], (2, 5, 3), "E", 53**-0.5),
        ("LinformerAttention", [2, 3, 53, 101], (2, 5, 3), "F", 53**-0.5),
        ("LearnedPositionalEncoding", [101], (2, 5, 53), "table", 0.02),
        # as a Dense layer of one unit has it
        ("GATv2Attention", [11, 101], (5, 3), "a", (2 / 102) ** 0.5),
        ("LanguageModel", [101, 52, 1, 2], (2, 5), "embeddings", 52**-0.5),
    ],
)
def test_weights_begin_as_large_as_they_should(
    name, sizes, shape, weight, deviation
):
    layer = getattr(d2l_attention, name)(*sizes)
    layer.build(shape)
    (found,) = [w for w in layer.weights if w.path.split("/")[-1] == weight]
    # A thousand numbers or more: their deviation is off by 2 or 3 percent.
    np.testing.assert_allclose(np.std(to_numpy(found)), deviation, rtol=0.08)


ROUNDED_NEVER = {  # in half precision; name → the variable
    "PerformerAttention": "directions",
    "ReformerAttention": "rotations",
    "SinkAttention": "sinks",
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_biases_begin_at_0(name):
    """But for the gates of states, which begin nearly open."""
    takes_bias = "use_bias" in constructor(name)[3]
    layer = make(name, **{"use_bias": True} if takes_bias else {})
    layer.build(*SHAPES[name].values())
    for weight in layer.trainable_weights:
        if weight.path.split("/")[-1] in ("b", "bias", "beta", "sinks"):
            is_gate = name.startswith("Gated") and "/W_a/" in weight.path
            assert (to_numpy(weight) == 4 * is_gate).all(), weight.path


@pytest.mark.parametrize("name", ARGUMENTS)
def test_what_no_half_precision_may_round_keeps_its_digits(name):
    layer, shapes = make(name), SHAPES[name]
    layer.build(*shapes.values())
    with keras.src.backend.AutocastScope("bfloat16"):
        kept = [
            v.path.split("/")[-1]
            for v in layer.variables
            if keras.backend.standardize_dtype(v.value.dtype) == "float32"
        ]
    kept = {*kept} - {"beta", "gamma"}  # of Keras's norms
    assert kept == {ROUNDED_NEVER.get(name)} - {None}


FUNCTIONS = {  # of queries, keys and values; name → what else they take
    "flash_attention": (),
    "grouped_query_attention": (),
    "longformer_attention": (1,),
    "multi_head_attention": (),
    "page_local_attention": (2,),
    "sink_attention": (np.ones(2),),
}


@pytest.mark.parametrize(("name", "more"), FUNCTIONS.items())
def test_no_function_rounds_float64_on_its_way(name, more):
    """What is computed in float32 is equal for equal inputs."""
    arrays = [draw(1, 5, 2, 3) for _ in range(3)]

    def computed(dtype):
        given = (x.astype(dtype) for x in arrays)
        found = getattr(d2l_attention, name)(*given, *more)
        found = found[0] if isinstance(found, tuple) else found
        assert keras.backend.standardize_dtype(found.dtype) == dtype
        return to_numpy(found)

    assert (computed("float64") != computed("float32")).any()


OTHERS_WITH_PRODUCTS = {
    "GraphDotProductAttention": lambda q, k, v: GraphDotProductAttention(
        2, 64
    ).score(q[0], k[0]),
    "biased_attention": lambda q, k, v: biased_attention(
        q / 8, k, v, np.zeros((2, 5, 5)), scale=1.0
    ),
    "scaled_dot_product_scores": lambda q, k, v: scaled_dot_product_scores(
        q[:, :, 0], k[:, :, 0]
    ),
    "selected_block_attention": lambda q, k, v: selected_block_attention(
        q, k, v, np.ones((1, 2, 5, 3), "bool"), 2, 3
    ),
}


@pytest.mark.parametrize("name", [*FUNCTIONS, *OTHERS_WITH_PRODUCTS])
def test_products_that_float16_does_not_hold_are_scaled_first(name):
    """q · k is 163,840 + 128 s; an eighth of it, and each sum, is exact."""
    function = OTHERS_WITH_PRODUCTS.get(name)
    if function is None:
        function = getattr(d2l_attention, name)
    query, key = np.full((1, 5, 2, 64), 64.0), np.full((1, 5, 2, 64), 40.0)
    key[..., 0] += 2 * np.arange(5)[:, None]

    def computed(dtype):
        given = (query, key, draw(1, 5, 2, 64).astype("float16"))
        given = (ops.convert_to_tensor(x.astype(dtype)) for x in given)
        found = function(*given, *FUNCTIONS.get(name, ()))
        return to_numpy(found[0] if isinstance(found, tuple) else found)

    begin_to_draw(0)
    expected = computed("float32")
    begin_to_draw(0)
    np.testing.assert_allclose(computed("float16"), expected, atol=1e-3)


SIZES = {
    "attention": ["num_heads", "key_dim"],
    "block": ["dim", "num_heads", "ffn_dim"],
    "stack": ["dim", "num_layers", "num_heads", "ffn_dim"],
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_what_stands_behind_the_sizes_is_given_by_name(name):
    signature = inspect.signature(public_layers()[name])
    arguments = [*signature.parameters.values()]
    positional = [
        x.name for x in arguments if x.kind is x.POSITIONAL_OR_KEYWORD
    ]
    assert {*positional} <= {
        *("num_heads", "num_kv_heads", "key_dim", "units", "max_length"),
        *("rank", "window", "page_size", "chunk_size", "num_buckets"),
        *("num_features", "dim", "num_layers", "ffn_dim", "output_dim"),
        *("attention", "latent_dim", "rotary_dim", "num_sinks"),
        *("num_queries", "patch_size"),
        *("block_size", "top"),
    }
    for sizes in SIZES.values():
        if {*sizes} <= {*positional}:
            assert [x for x in positional if x in sizes] == sizes
    assert not any(x.kind is x.VAR_POSITIONAL for x in arguments)


@pytest.mark.parametrize(
    "name",
    [
        *ARGUMENTS,
        *("BahdanauSeq2Seq", "FixedContextSeq2Seq", "RNNSearch"),
        *("Transformer", "LanguageModel", "PointerNetwork"),
        *("BlockLanguageModel", "ContrastivePair", "VisionTransformer"),
        "HierarchicalAttentionNetwork",
    ],
)
def test_help_shows_a_signature_and_sends_nobody_to_a_private_class(name):
    """That each argument has its entry is asked in `test_doctests`."""
    found = getattr(d2l_attention, name)
    parameters = {*inspect.signature(found).parameters}
    assert not parameters & {"args", "options"}
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


INSTEAD = {  # of layers that form no weights: what gives them
    **dict.fromkeys(
        (
            *("DecayedAttention", "DeltaAttention", "GatedDeltaAttention"),
            *("GatedLinearAttention", "LinearAttention"),
        ),
        "linear_attention_weights of d2l_attention.layers.linear",
    ),
    "NativeSparseAttention": "SelectedBlockAttention",
    "FlashAttention": "MultiHeadAttention",
    "LinformerAttention": "MultiHeadAttention",
    "LongformerAttention": "longformer_mask of d2l_attention.layers.longformer",
    "PageLocalAttention": "page_mask of d2l_attention.layers.page_local",
    "PerformerAttention": "performer_weights of d2l_attention.layers.performer",
    "ReformerAttention": "reformer_mask of d2l_attention.layers.reformer",
}


def test_every_layer_without_weights_is_listed():
    """What asks for weights has dropout too."""
    lists = {**SELF_ATTENTION, **OWN_PATTERN, **DECODERS, **CONTEXT}
    without = set()
    for name in lists:
        forms_weights = public_layers()[name].weights_from is None
        assert forms_weights == ("dropout" in constructor(name)[3]), name
        without |= set() if forms_weights else {name}
    assert without == {*INSTEAD}


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in {**SELF_ATTENTION, **OWN_PATTERN, **CONTEXT}
        if "dropout" in constructor(name)[3]
        # One draws its weights in training, one drops its inputs.
        and name not in ("HardAttention", "TransformerEncoder")
    ],
)
def test_weights_are_returned_as_they_were_before_dropout(name):
    layer, shapes = make(name, dropout=0.5), SHAPES[name]
    layer.build(*shapes.values())
    for weight in layer.trainable_weights:
        weight.assign(draw(*weight.shape))
    inputs = {x.removesuffix("_shape"): draw(*shapes[x]) for x in shapes}
    query = inputs.pop("query")

    def computed(training):
        found = layer(
            query, training=training, return_attention_scores=True, **inputs
        )
        output, weights = keras.tree.flatten(found)
        return to_numpy(output), to_numpy(weights)

    (output, weights), (dropped, same) = computed(False), computed(True)
    np.testing.assert_allclose(weights, same, rtol=1e-5, atol=1e-6)
    assert not np.allclose(output, dropped, rtol=1e-3)


@pytest.mark.parametrize(("name", "instead"), INSTEAD.items())
def test_what_needs_weights_is_refused_with_the_way_out(name, instead):
    """Dropout acts on weights, and scores are weights."""
    words = rf"{name} forms no weights.*{instead}.*dropout=0.1"
    with pytest.raises(ValueError, match=words):
        make(name, dropout=0.1)
    x = np.ones((2, 5, 4), "float32")
    words = rf"{name} forms no weights.*{instead}.*return_attention_scores=True"
    for tensor in (x, keras.KerasTensor(x.shape)):
        with pytest.raises(ValueError, match=words):
            make(name)(tensor, return_attention_scores=True)
    function, _, module = instead.partition(" of ")
    assert hasattr(importlib.import_module(module or "d2l_attention"), function)


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


def two_sequences():
    """Queries `(2, 5, 4)`, and two tensors of another length and batch."""
    random = np.random.default_rng(0)
    shapes = (2, 5, 4), (2, 3, 4), (2, 3, 4)
    return [random.normal(size=shape).astype("float32") for shape in shapes]


@pytest.mark.parametrize("name", SELF_ATTENTION)
def test_keys_default_to_values_and_values_to_keys(name):
    """As in `keras.layers`: what stands second is both."""
    x, y, z = two_sequences()
    layer = make(name)
    expected = to_numpy(layer(x, key=y, value=y))
    for found in (layer(x, y), layer(x, value=y), layer(x, key=y)):
        np.testing.assert_array_equal(to_numpy(found), expected)
    foreign = to_numpy(layer(x, key=z, value=y))
    assert np.abs(foreign - expected).max() > 1e-4
    np.testing.assert_array_equal(to_numpy(layer(x, y, key=z)), foreign)
    # Of one length, keys that came from the queries would go unnoticed.
    same = to_numpy(layer(x, x[::-1]))
    np.testing.assert_array_equal(
        same, to_numpy(layer(x, key=x[::-1], value=x[::-1]))
    )
    assert np.abs(same - to_numpy(layer(x, key=x, value=x[::-1]))).max() > 1e-4


@pytest.mark.parametrize("name", SELF_ATTENTION)
def test_a_value_alone_is_the_key_in_every_declaration(name):
    """`build`, shapes and specs have Keras's order: query, value, key."""
    shapes = (2, 5, 4), (2, 3, 6)
    if name in ("DotProductAttention", "HardAttention", "NWKernelRegression"):
        shapes = (2, 5, 4), (2, 3, 4)  # keys have the queries' features
    if name == "StructuredAttention":
        shapes = (2, 5, 4), (2, 3, 4)
    query, value = (np.ones(shape, "float32") for shape in shapes)
    symbols = [keras.KerasTensor(shape) for shape in shapes]
    output = make(name)(query, value)
    built = make(name)
    built.build(*shapes)
    assert [w.shape for w in built.weights] == [
        w.shape for w in make_built(name, query, value).weights
    ]
    assert built.compute_output_shape(*shapes) == tuple(output.shape)
    assert make(name)(*symbols).shape == tuple(output.shape)
    # Keys of another size than the values, in Keras's third place.
    key_shape = (2, 3, 6 if name == "LatentAttention" else 4)
    three = make(name).compute_output_shape(*shapes, key_shape)
    whole = make(name)(query, value, key=np.ones(key_shape, "float32"))
    assert three == tuple(whole.shape)


def make_built(name, *inputs):
    layer = make(name)
    layer(*inputs)
    return layer


def test_the_same_call_as_keras_s_gives_the_same():
    x, y, z = two_sequences()
    theirs = keras.layers.MultiHeadAttention(2, 3, use_bias=False)
    ours = make("MultiHeadAttention")
    theirs(x, y), ours(x, y)
    dense = ("query", "key", "value", "output")
    for part in dense:
        kernel = getattr(theirs, f"{part}_dense").kernel
        kernel = ops.reshape(kernel, (4, 6) if part != "output" else (6, 4))
        getattr(ours, f"{part}_layer").kernel.assign(kernel)
    for arguments, more in (((x, y), {}), ((x, y), {"key": z}), ((x, x), {})):
        np.testing.assert_allclose(
            to_numpy(ours(*arguments, **more)),
            to_numpy(theirs(*arguments, **more)),
            atol=1e-6,
        )


ONE_OR_TWO = {
    **dict.fromkeys(SELF_ATTENTION, 2),
    **dict.fromkeys(DECODERS, 2),
    **dict.fromkeys(OWN_PATTERN, 1),
    "ContextAttention": 1,
}


@pytest.mark.parametrize(("name", "number"), ONE_OR_TWO.items())
def test_more_tensors_by_position_are_refused_with_a_sentence(name, number):
    x = np.ones((2, 5, 4), "float32")
    for tensor in (x, keras.KerasTensor(x.shape)):
        with pytest.raises(TypeError, match=rf"{name} takes .* by position"):
            make(name)(*[tensor] * (number + 1))


@pytest.mark.parametrize("name", ONE_OR_TWO)
def test_a_list_of_tensors_is_refused_with_a_sentence(name):
    x = np.ones((2, 5, 4), "float32")
    for inputs in ([x, x], (x, x, x), [keras.KerasTensor(x.shape)] * 2):
        with pytest.raises(ValueError, match="query must be one tensor"):
            make(name)(inputs)


@pytest.mark.parametrize("name", [*SELF_ATTENTION, *DECODERS])
def test_a_mask_in_the_place_of_a_value_is_refused(name):
    x, mask = np.ones((2, 5, 4), "float32"), np.ones((2, 5), "bool")
    for wrong in (mask, np.ones((2, 5, 5), "bool"), np.ones((2, 5, 4), "bool")):
        for tensor in (wrong, keras.KerasTensor(wrong.shape, "bool")):
            with pytest.raises(
                ValueError, match="attention_mask=mask.*boolean"
            ):
                make(name)(x, tensor)


POOLING = "AttentionPooling", "LearnedQueryAttention"


def masks_of_tokens(name):
    """The masks (B, T) or (B, S) that a layer takes by name."""
    names = inspect.signature(public_layers()[name].call).parameters
    others = {"attention_mask", "cross_attention_mask", "use_causal_mask"}
    return [x for x in names if x.endswith("mask") and x not in others]


def call_with(name, **named):
    """Three sentences of three tokens, so that a wrong axis would fit too."""
    x = np.ones((3, 3, 4), "float32")
    inputs = {"key": x} if name in DECODERS else {}
    inputs |= {"context": x} if name == "ContextAttention" else {}
    if any(isinstance(x, keras.KerasTensor) for x in named.values()):
        x = keras.KerasTensor(x.shape)
        inputs = dict.fromkeys(inputs, x)
    return make(name)(x, **inputs, **named)


@pytest.mark.parametrize("name", [*ONE_OR_TWO, *POOLING])
@pytest.mark.parametrize("shape", [(3,), (3, 1), (3, 4), (2, 3), (3, 3, 1)])
def test_a_mask_that_is_not_one_of_tokens_is_refused(name, shape):
    """Whatever it would broadcast to, and before the shapes are known."""
    for mask in masks_of_tokens(name):
        wrong = np.ones(shape, "bool")
        for tensor in (wrong, keras.KerasTensor(shape, "bool")):
            with pytest.raises(ValueError) as told:
                call_with(name, **{mask: tensor})
            message = str(told.value)
            assert mask in message and f"Received: shape {shape}" in message
            assert "(3, 3)" in message


@pytest.mark.parametrize("name", [*ONE_OR_TWO, *POOLING])
def test_a_mask_of_integers_is_refused_where_it_is_not_needed_too(name):
    for mask in masks_of_tokens(name):
        wrong = np.ones((3, 3), "int32")
        for tensor in (wrong, keras.KerasTensor((3, 3), "int32")):
            with pytest.raises(ValueError, match="must be boolean.*int32"):
                call_with(name, **{mask: tensor})


@pytest.mark.parametrize("name", ONE_OR_TWO)
def test_one_row_of_a_mask_holds_for_all_sentences_and_a_list_is_a_mask(name):
    row = [[True, True, False]]
    for mask in masks_of_tokens(name):
        outputs = [
            call_with(name, **{mask: x}) for x in (row, np.array(row * 3))
        ]
        assert outputs[0].shape == outputs[1].shape


@pytest.mark.parametrize("name", ONE_OR_TWO)
def test_a_mask_of_pairs_needs_two_axes_at_least(name):
    names = inspect.signature(public_layers()[name].call).parameters
    for mask in {"attention_mask", "cross_attention_mask"} & {*names}:
        with pytest.raises(ValueError, match=rf"{mask}.*\(T, S\).*\(3,\)"):
            call_with(name, **{mask: np.ones(3, "bool")})


@pytest.mark.parametrize("name", ONE_OR_TWO)
def test_a_name_that_a_call_does_not_have_is_answered_with_those_it_has(name):
    for tensor in (np.ones((3, 3, 4)), keras.KerasTensor((3, 3, 4))):
        with pytest.raises(TypeError, match=rf"{name} .*atention_mask.*query"):
            make(name)(tensor, atention_mask=None)
        with pytest.raises(ValueError, match="query must be one tensor.*None"):
            make(name)(None)


@pytest.mark.parametrize(
    "positions", [[False, True, False], np.array([0.0, 2.9]), [[True], [False]]]
)
def test_global_positions_that_are_no_integers_are_refused(positions):
    layer, x = make("LongformerAttention"), np.ones((2, 3, 4), "float32")
    with pytest.raises(ValueError, match="global_positions.*integers.*flatnon"):
        layer(x, global_positions=positions)
    with pytest.raises(ValueError, match="global_positions.*integers.*flatnon"):
        longformer_mask(3, 1, positions)


@pytest.mark.parametrize("name", DECODERS)
def test_a_decoder_takes_its_source_by_position_and_names_a_missing_one(name):
    x, y, _ = two_sequences()
    block = make(name)
    np.testing.assert_array_equal(
        to_numpy(block(x, y)), to_numpy(block(x, key=y))
    )
    for tensor in (x, keras.KerasTensor(x.shape)):
        for layer in (block, make(name)):  # built, and not yet
            with pytest.raises(ValueError, match=rf"{name}.*key"):
                layer(tensor)


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
