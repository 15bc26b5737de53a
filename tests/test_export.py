"""Layers of free length, exported, compute the same at other lengths.

ONNX needs `tf2onnx` and `onnxruntime`, which `.ci/run` installs in an
environment of its own; without them these tests are skipped.
"""

import inspect

from contract import to_numpy
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
    public_layers,
)
import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("a SavedModel comes first", allow_module_level=True)
ort = pytest.importorskip("onnxruntime")
pytest.importorskip("tf2onnx")
import tensorflow as tf  # noqa: E402


def axes_of(name):
    """The axes of each input of a layer's call; a letter is a free size."""
    if name in SELF_ATTENTION:
        return {"query": "BT4", "value": "BS4", "key_mask": "BS"}
    if name in DECODERS:
        of_masks = {"query_mask": "BT", "key_mask": "BS"}
        return {"query": "BT4", "key": "BS4", **of_masks}
    if name in OWN_PATTERN:
        return {"query": "BT4", "key_mask": "BT"}
    if name in CONTEXT:
        return {"query": "BT4", "context": "BT3", "key_mask": "BT"}
    if name in GRAPHS:
        return {"x": "T4", "edges": "S2"}
    if name in POSITION_WISE:
        return {"x": "BT4"}
    others = {
        "AddNorm": {"x": "BT4", "y": "BT4"},
        "ContextGate": {"x": "BT23", "context": "BT4"},
        "MovingBaseline": {"reward": "B"},
        "PatchEmbedding": {"x": "B463"},
    }
    return others[name]


def model_of(name, causal):
    """A functional model of one layer, its batch and lengths unknown."""
    inputs = {}
    for argument, axes in axes_of(name).items():
        shape = [int(x) if x.isdigit() else None for x in axes]
        dtype = {"key_mask": "bool", "query_mask": "bool", "edges": "int32"}
        inputs[argument] = keras.Input(
            batch_shape=shape,
            dtype=dtype.get(argument, "float32"),
            name=argument,
        )
    layer = make(name)
    output = layer(**inputs)
    output = output[0] if isinstance(output, tuple) else output
    outputs = {"output": output}
    if causal and "use_causal_mask" in inspect.signature(layer.call).parameters:
        own = {x: inputs[x] for x in inputs.keys() & {"query", "context"}}
        outputs["causal"] = layer(**own, use_causal_mask=True)
    return keras.Model(inputs, outputs)


def draw(name, sizes):
    random, arrays = np.random.default_rng(0), {}
    for argument, axes in axes_of(name).items():
        shape = [int(x) if x.isdigit() else sizes[x] for x in axes]
        if "mask" in argument:
            lengths = random.integers(0, shape[1] + 1, (shape[0], 1))
            lengths[0] = 0  # a sentence that is empty
            arrays[argument] = np.arange(shape[1]) < lengths
        elif argument == "edges":  # among T nodes, none twice
            pairs = random.permutation(sizes["T"] ** 2)[: shape[0]]
            pairs = np.stack(np.divmod(pairs, sizes["T"]), 1)
            arrays[argument] = pairs.astype("int32")
        else:
            arrays[argument] = random.normal(size=shape).astype("float32")
    return arrays


def as_saved_model(model, folder):
    model.export(folder / "model", verbose=False)
    loaded = tf.saved_model.load(folder / "model")
    return lambda arrays: loaded.serve(arrays)  # which keeps it


def as_onnx(model, folder):
    model.export(folder / "model.onnx", format="onnx", verbose=False)
    session = ort.InferenceSession(folder / "model.onnx")
    names = [x.name for x in session.get_outputs()]
    return lambda arrays: dict(
        zip(names, session.run(None, arrays), strict=True)
    )


def as_tflite(model, folder):
    model.export(folder / "model", verbose=False)
    converter = tf.lite.TFLiteConverter.from_saved_model(str(folder / "model"))
    interpreter = tf.lite.Interpreter(model_content=converter.convert())
    signature = interpreter.get_signature_runner("serving_default")
    return lambda arrays: signature(**arrays)


FORMATS = {"SavedModel": as_saved_model, "ONNX": as_onnx, "TFLite": as_tflite}
LENGTHS = ({"B": 2, "T": 5, "S": 7}, {"B": 3, "T": 6, "S": 4})
ONE = {"B": 1, "T": 1, "S": 1}
CANNOT = {  # and says so in its docstring
    ("ONNX", "FlashAttention"),
    ("TFLite", "FlashAttention"),
    ("TFLite", "StructuredAttention"),
    *(
        ("TFLite", name)
        for name in (
            *("DecayedAttention", "DeltaAttention", "GatedDeltaAttention"),
            *("GatedLinearAttention", "LinearAttention"),
        )
    ),
}
CANNOT_CAUSAL = {
    *((x, "LinformerAttention") for x in FORMATS),  # has no causal form
    ("TFLite", "PerformerAttention"),
}


@pytest.mark.filterwarnings("ignore:\\s*Warning. tf.lite.Interpreter")
@pytest.mark.parametrize(
    ("format_", "name"),
    [
        *(("SavedModel", name) for name in ARGUMENTS),
        # which are made of it: one layer of each mechanism, and exceptions
        *((x, name) for x in ("ONNX", "TFLite") for name in sorted(MECHANISMS)),
        *sorted((x, name) for x, name in CANNOT if name not in MECHANISMS),
    ],
)
def test_at_another_length_the_exported_layer_computes_the_same(
    format_, name, tmp_path
):
    if (format_, name) in CANNOT:
        assert format_ in public_layers()[name].__doc__
        return
    keras.utils.set_random_seed(0)
    model = model_of(name, causal=(format_, name) not in CANNOT_CAUSAL)
    model(draw(name, LENGTHS[0]))
    run = FORMATS[format_](model, tmp_path)
    for sizes in (*LENGTHS, ONE):
        arrays = draw(name, sizes)
        outputs = run(arrays)
        for output, expected in model(arrays).items():
            found, expected = np.array(outputs[output]), to_numpy(expected)
            assert found.shape == expected.shape
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
