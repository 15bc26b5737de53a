"""Copy the parameters of PyTorch's, of Keras's and of flash layers.

`copy_encoder_layer` and `copy_decoder_layer` read PyTorch's Transformer layers,
`copy_attention_layer` goes from Keras's attention to ours and back,
`copy_language_model` to a Qwen3 of keras-hub and back, and
`copy_with_dense_attention` copies a model with flash layers to one that can
return its attention weights.

PyTorch keeps a kernel as (out, in), Keras as (in, out), so each kernel is
transposed. PyTorch stacks W_q, W_k and W_v into one array. The order of the
heads is the same in all: head h owns features hK … (h + 1)K − 1.

A state_dict does not hold `nhead`, `activation`, `norm_first` and
`layer_norm_eps`, so you make the block with the same `num_heads`,
`activation`, `normalize_first` and `epsilon`. PyTorch's layers have biases by
default, in attention too; our blocks have those with `use_bias=True`.
`batch_first` makes no difference to the weights.
"""

from d2l_attention._checks import as_array
from d2l_attention.layers.flash import FlashAttention
from d2l_attention.layers.multi_head import MultiHeadAttention
from d2l_attention.layers.multi_query import (
    GroupedQueryAttention,
    MultiQueryAttention,
)
from d2l_attention.layers.relative_positions import rotary_frequencies
from d2l_attention.models.language_model import ModernLanguageModel
import keras
from keras import ops
import numpy as np


def copy_encoder_layer(block, state_dict):
    """Copy a `torch.nn.TransformerEncoderLayer` into an encoder block.

        PyTorch                    TransformerEncoderBlock
        self_attn.in_proj_*        self_attention: W_q, W_k, W_v
        self_attn.out_proj.*       self_attention: W_o
        norm1.*                    self_attention_norm
        linear1.*, linear2.*       ffn: hidden, output
        norm2.*                    ffn_norm

    A layer made with `bias=False` has no biases in its net and norms either.
    The block's net and norms keep theirs, as zeros. A block that is not built
    yet is built. The weights change only once every name and shape is known
    to fit.

    Args:
        block: `TransformerEncoderBlock`.
        state_dict: Dict of the names above to arrays, or to anything that
            `np.asarray` reads, such as a tensor on the CPU. The names of a
            layer in a stack begin with a prefix such as `"layers.0."`, which
            you remove first.

    Raises:
        ValueError: If `block` is no encoder block, names are missing or
            unexpected, a shape is wrong, a value holds no numbers, or only
            one of block and layer has biases.
    """
    _check_block(block, "Encoder", ["self_attention"])
    if not block.built:
        block.build((None, None, block.dim))
    places = {
        **_attention("self_attn", block.self_attention),
        **_norm("norm1", block.self_attention_norm),
        **_feed_forward(block.ffn),
        **_norm("norm2", block.ffn_norm),
    }
    _copy(places, state_dict, "Encoder", bool(block.use_bias))


def copy_decoder_layer(block, state_dict):
    """Copy a `torch.nn.TransformerDecoderLayer` into a decoder block.

        PyTorch                    TransformerDecoderBlock
        self_attn.in_proj_*        self_attention: W_q, W_k, W_v
        self_attn.out_proj.*       self_attention: W_o
        norm1.*                    self_attention_norm
        multihead_attn.in_proj_*   cross_attention: W_q, W_k, W_v
        multihead_attn.out_proj.*  cross_attention: W_o
        norm2.*                    cross_attention_norm
        linear1.*, linear2.*       ffn: hidden, output
        norm3.*                    ffn_norm

    PyTorch's layer attends to later tokens unless it is given a `tgt_mask`.
    Our block never does. The arguments and errors are those of
    `copy_encoder_layer`. A block that is not built yet is built for keys of
    `dim` features, and a block for keys of another size is refused.
    """
    _check_block(block, "Decoder", ["self_attention", "cross_attention"])
    if not block.built:
        block.build((None, None, block.dim), (None, None, block.dim))
    places = {
        **_attention("self_attn", block.self_attention),
        **_norm("norm1", block.self_attention_norm),
        **_attention("multihead_attn", block.cross_attention),
        **_norm("norm2", block.cross_attention_norm),
        **_feed_forward(block.ffn),
        **_norm("norm3", block.ffn_norm),
    }
    _copy(places, state_dict, "Decoder", bool(block.use_bias))


def copy_attention_layer(layer, source):
    """Copy the parameters of one attention layer into another.

        keras.layers        d2l_attention
        query               query_layer, W_q: kernel (D, H, K) as (D, H K)
        key                 key_layer, W_k: (D', H, K) as (D', H K)
        value               value_layer, W_v: (D'', H, V) as (D'', H V)
        attention_output    output_layer, W_o: (H, V, O) as (H V, O)

    Each of the two is a `MultiHeadAttention` or a `GroupQueryAttention` of
    `keras.layers`, or a `MultiHeadAttention`, `GroupedQueryAttention`,
    `MultiQueryAttention` or `FlashAttention` of this package, so parameters
    go there and back, and bit for bit where both keep them in one dtype. A
    layer that is not built yet is built. The parameters change only once all
    sizes are known to fit.

    With equal parameters the layers compute the same, but for two cases. A
    query with nothing to attend to gets zeros before W_o from our layers, and
    not from Keras's. With `use_causal_mask=True` and fewer queries than keys,
    our last query sees all keys, and Keras's first query sees the first key.
    The rate of dropout is not copied.

    Args:
        layer: Attention layer, made with the sizes and the `use_bias` of
            `source`. Keras has biases by default, and our layers have none.
        source: Built attention layer.

    Raises:
        ValueError: If one of them is no such layer, `source` is not built,
            the sizes differ, only one has biases, or one has what the other
            layers do not: a gate, a sliding window, several axes of positions
            or of output features, or weights besides kernels and biases.

    Example:
        >>> import keras
        >>> import numpy as np
        >>> from d2l_attention import MultiHeadAttention
        >>> from d2l_attention.models.copying import copy_attention_layer
        >>> theirs = keras.layers.MultiHeadAttention(num_heads=2, key_dim=3)
        >>> x = np.arange(20.0).reshape(1, 5, 4) / 20
        >>> expected = theirs(x, x)
        >>> ours = MultiHeadAttention(num_heads=2, key_dim=3, use_bias=True)
        >>> copy_attention_layer(ours, theirs)
        >>> bool(np.allclose(ours(x), expected, atol=1e-6))
        True
    """
    for name, each in {"layer": layer, "source": source}.items():
        _check_attention(name, each)
    _check_built("source", source)
    features = _features(source)
    _check_sizes(
        _sizes(layer, _features(layer) if layer.built else features),
        _sizes(source, features),
    )
    if not layer.built:
        layer.build(*((None, None, size) for size in features))
        _features(layer)
    for new, old in zip(layer.weights, source.weights, strict=True):
        new.assign(ops.reshape(old, new.shape))


def _check_built(name, layer):
    if not layer.built:
        raise ValueError(
            f"`{name}` must be built, or it has no weights to copy: call it "
            f"first. Received: {layer.name!r}, not built."
        )


def copy_language_model(model, source):
    """Copy the parameters of a language model of today into another.

        Qwen3Backbone of keras-hub             ModernLanguageModel
        token_embedding/embeddings             embedding
        token_embedding/reverse_embeddings     output_layer, if it is not tied
        transformer_layer_i/…                  blocks[i]
          self_attention/query, key, value     self_attention: W_q, W_k, W_v
          self_attention/*_dense_layernorm     query_norm, key_norm
          self_attention/attention_output      W_o
          self_attention_layernorm             self_attention_norm
          feedforward_gate_dense               ffn.gate, W₁
          feedforward_intermediate_dense       ffn.hidden, W₂
          feedforward_output_dense             ffn.output_layer, W₃
          feedforward_layernorm                ffn_norm
        sequence_output_layernorm              final_norm

    Parameters go either way, and between two of a kind. They change only once
    all sizes are known to fit. A `ModernLanguageModel` with a window, sinks, a
    gate or a cap computes what a Qwen3 does not, so it is refused, as is a
    Qwen3 whose window is shorter than our `max_length`.

    With equal parameters both compute the same, for texts of at most our
    `max_length` tokens. A backbone returns no logits:
    those are `backbone.token_embedding(output, reverse=True)`. In its QK-norm
    keras-hub 0.32 adds 1e-5 to the mean square, whatever its
    `layer_norm_epsilon` is, which shows where queries and keys are small.

    Args:
        model: `ModernLanguageModel` or `keras_hub.models.Qwen3Backbone`.
        source: One of them, built.

    Raises:
        ValueError: If one of them is neither, `source` is not built, or the
            sizes or what the models compute differ.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import ModernLanguageModel
        >>> from d2l_attention.models.copying import copy_language_model
        >>> source, model = (
        ...     ModernLanguageModel(7, 8, 1, 2, 16) for _ in range(2)
        ... )
        >>> ids = np.array([[3, 5, 6]])
        >>> expected = source(ids)
        >>> copy_language_model(model, source)
        >>> bool(np.allclose(model(ids), expected, atol=1e-6))
        True
    """
    for name, each in {"model": model, "source": source}.items():
        if not _is_qwen3(each) and type(each) is not ModernLanguageModel:
            raise ValueError(
                f"`{name}` must be a ModernLanguageModel, or a Qwen3Backbone "
                f"of keras-hub. Received: {type(each).__name__}."
            )
    _check_built("source", source)
    received, wanted = _language_model(model), _language_model(source)
    longest = max(_longest(model), _longest(source))
    for each in (received, wanted):
        if each["window"] is not None and each["window"] >= longest:
            each["window"] = None  # it hides nothing
    if differing := [
        f"{name} {received[name]}, wanted {value}"
        for name, value in wanted.items()
        if received[name] != value
    ]:
        raise ValueError(
            "The two models must have the same sizes and compute the same. "
            f"Received: {'; '.join(differing)}."
        )
    if not model.built:
        model.build((None, None))
    new, old = _places(model), _places(source)
    for name, variable in new.items():
        variable.assign(ops.reshape(old[name], variable.shape))


def copy_with_dense_attention(model):
    """Copy a model, with a `MultiHeadAttention` for each `FlashAttention`.

    The copy has the same parameters and computes the same, up to rounding, and
    its dense layers have the attention weights that a flash layer never forms,
    for `get_attention_weights` and `return_attention_scores`. They need memory
    for T times S weights in each head. The copy is independent of the model:
    training one does not change the other.

    Flash layers are replaced in functional and Sequential models, in models
    inside these, and in each layer whose config holds them, such as
    `TimeDistributed`. The other layers are made again from their configs, as
    when a model is loaded from a file, so a loss of your own, or the function
    of a `Lambda`, must be registered with Keras.

    Args:
        model: Built model or layer that holds a `FlashAttention`.

    Returns:
        Model or layer like `model`. It is compiled if `model` is, without the
        state of the optimizer.

    Raises:
        ValueError: If `model` is not built or has no flash layer, or if a
            layer, which is named, cannot be made again from its config, makes
            a flash layer by itself, or has other parameters when it is made
            again.

    Example:
        >>> import keras
        >>> import numpy as np
        >>> from d2l_attention import FlashAttention
        >>> from d2l_attention.models.copying import (
        ...     copy_with_dense_attention,
        ... )
        >>> layers = [FlashAttention(2, 3), keras.layers.Dense(1)]
        >>> flash = keras.Sequential([keras.Input((None, 4)), *layers])
        >>> dense = copy_with_dense_attention(flash)
        >>> x = np.arange(20.0).reshape(1, 5, 4) / 20
        >>> bool(np.allclose(dense(x), flash(x), atol=1e-5))
        True
        >>> _, weights = dense.layers[0](x, return_attention_scores=True)
        >>> tuple(weights.shape)
        (1, 2, 5, 5)
    """
    _check_built("model", model)
    if not _flash_layers(model):
        raise ValueError(
            "`model` must hold a FlashAttention of d2l_attention. Received: "
            f"{_named(model)}, which holds none."
        )
    if not hasattr(model, "inputs"):  # not functional, and not Sequential
        copied = _with_dense_layers(model)
        _copy_weights(copied, model)
        return copied
    copies = []  # pairs of a layer and its copy

    def copy_layer(layer):
        copies.append((layer, _with_dense_layers(layer, is_called=True)))
        return copies[-1][1]

    copied = keras.models.clone_model(
        model, clone_function=copy_layer, recursive=True
    )
    for layer, new in copies:
        _copy_weights(new, layer)
    return copied


def _check_block(block, kind, wanted):
    """Refuse a block whose attention layers are not the wanted ones."""
    attentions = ("self_attention", "cross_attention")
    if [name for name in attentions if hasattr(block, name)] != wanted:
        raise ValueError(
            f"`block` must be a Transformer{kind}Block. Received: "
            f"{type(block).__name__}."
        )


# The next four functions return a dict: a name of PyTorch → the list of our
# variables that PyTorch stacks into the array of this name.


def _attention(name, layer):
    layers = (layer.query_layer, layer.key_layer, layer.value_layer)
    return {
        f"{name}.in_proj_weight": [x.kernel for x in layers],
        f"{name}.in_proj_bias": [x.bias for x in layers],
        **_dense(f"{name}.out_proj", layer.output_layer),
    }


def _dense(name, layer):
    return {f"{name}.weight": [layer.kernel], f"{name}.bias": [layer.bias]}


def _feed_forward(ffn):
    return {
        **_dense("linear1", ffn.hidden),
        **_dense("linear2", ffn.output_layer),
    }


def _norm(name, add_norm):
    norm = add_norm.norm
    return {f"{name}.weight": [norm.gamma], f"{name}.bias": [norm.beta]}


def _copy(places, state_dict, kind, use_bias):
    wanted = {n: v for n, v in places.items() if use_bias or not _is_bias(n)}
    _check_names(wanted, state_dict, kind, use_bias)
    arrays = _read(wanted, state_dict)
    for name, variables in wanted.items():
        parts = np.split(arrays[name], len(variables))
        for variable, part in zip(variables, parts, strict=True):
            variable.assign(part.T)
    for name in places.keys() - wanted.keys():
        for variable in places[name]:
            if variable is not None:  # norms and nets always have theirs
                variable.assign(np.zeros(variable.shape))


def _is_bias(name):
    return name.endswith("bias")


def _check_names(wanted, state_dict, kind, use_bias):
    biases = sorted(filter(_is_bias, state_dict))
    if bool(biases) != use_bias:
        raise ValueError(
            f"A block with use_bias={use_bias} takes the weights of a layer "
            f"made with bias={use_bias}. Received: biases {biases}."
        )
    missing = sorted(wanted.keys() - state_dict.keys())
    unexpected = sorted(state_dict.keys() - wanted.keys())
    if missing or unexpected:
        raise ValueError(
            f"The state_dict is of no torch.nn.Transformer{kind}Layer. "
            f"Received: missing {missing}, unexpected {unexpected}."
        )


def _read(wanted, state_dict):
    """Dict of name to array, each of the shape that PyTorch gives it."""
    arrays, wrong = {}, []
    for name, variables in wanted.items():
        array, shape = _array(name, state_dict[name]), _shape(variables)
        if array.shape != shape:
            wrong.append(f"{name} of shape {array.shape}, wanted {shape}")
        arrays[name] = array
    if wrong:
        raise ValueError(
            f"The sizes differ from the block's. Received: {'; '.join(wrong)}."
        )
    return arrays


def _array(name, value):
    try:
        return as_array(value, "float64")
    except (RuntimeError, TypeError, ValueError) as error:
        raise ValueError(
            f"Every value must be an array of numbers. Received: {name}, "
            f"a {type(value).__name__}: {error}"
        ) from error


def _shape(variables):
    """PyTorch's shape of the stacked variables: (out, in) or (out,)."""
    shapes = [tuple(variable.shape) for variable in variables]
    if len({*shapes}) > 1:
        raise ValueError(
            "PyTorch stacks W_q, W_k and W_v of one shape. Received: a block "
            f"that has {', '.join(map(str, shapes))}."
        )
    *size, out = shapes[0]
    return (len(shapes) * out, *size)


# What `copy_attention_layer` needs. Its layers keep their weights in the order
# of W_q, W_k, W_v and W_o, each a kernel and, if there are biases, a bias.

_ATTENTION = {
    "keras.layers.MultiHeadAttention": keras.layers.MultiHeadAttention,
    "keras.layers.GroupQueryAttention": keras.layers.GroupQueryAttention,
    "MultiHeadAttention": MultiHeadAttention,
    "GroupedQueryAttention": GroupedQueryAttention,
    "MultiQueryAttention": MultiQueryAttention,
    "FlashAttention": FlashAttention,
}


def _check_attention(name, layer):
    """Refuse what is no attention layer, or does what others cannot do."""
    # A subclass of ours does more: it rotates, has a window, a gate or sinks.
    theirs = keras.layers.MultiHeadAttention, keras.layers.GroupQueryAttention
    if not (isinstance(layer, theirs) or type(layer) in _ATTENTION.values()):
        raise ValueError(
            f"`{name}` must be one of {', '.join(_ATTENTION)}. Received: "
            f"{type(layer).__name__}."
        )
    config = layer.get_config()
    alone = {
        "use_gate": config.get("use_gate"),
        "sliding_window": config.get("sliding_window"),
        "attention_axes": config.get("attention_axes") not in (None, (1,)),
        "output_shape": len(config.get("output_shape") or ()) > 1,
    }
    if alone := {key: config[key] for key, value in alone.items() if value}:
        raise ValueError(
            "Weights are copied between layers with one axis of positions and "
            "one of output features, no gate and no window. (In self-attention "
            "a window is a mask, too: attention_mask=window_mask(T, T, w - 1, "
            "w - 1) with a layer made without it.) Received: "
            f"`{name}` with {alone}."
        )


def _features(layer):
    """Features of queries, values and keys, in the order of `build`."""
    step = 1 + layer.use_bias
    if [x.name for x in layer.weights] != 4 * ["kernel", "bias"][:step]:
        raise ValueError(
            "An attention layer must have a kernel for each of W_q, W_k, W_v "
            "and W_o, biases if use_bias=True, and no other weights. Received: "
            f"{_named(layer)} with {[x.path for x in layer.weights]}."
        )
    query, key, value, _ = (x.shape[0] for x in layer.weights[::step])
    return query, value, key


def _sizes(layer, features):
    """What must be the same in both layers, by the names that ours have."""
    value_dim, output_dim = getattr(layer, "value_dim", None), None
    if isinstance(layer, keras.layers.GroupQueryAttention):
        num_heads, num_kv_heads = (
            layer.num_query_heads,
            layer.num_key_value_heads,
        )
        key_dim = value_dim = layer.head_dim
    elif isinstance(layer, keras.layers.MultiHeadAttention):
        num_heads = num_kv_heads = layer.num_heads
        key_dim = layer.key_dim
        output_dim = (layer.get_config()["output_shape"] or (None,))[0]
    else:
        num_heads, num_kv_heads = layer.num_heads, layer.num_kv_heads
        key_dim, output_dim = layer.key_dim, layer.output_dim
    return {
        "num_heads": num_heads,
        "num_kv_heads": num_kv_heads,
        "key_dim": key_dim,
        "value_dim": value_dim,
        "output_dim": output_dim or features[0],
        "use_bias": layer.use_bias,
        "features of (query, value, key)": tuple(features),
    }


def _check_sizes(received, wanted):
    """Refuse a layer whose sizes are not those of the source."""
    differ = [
        f"{name} {received[name]}, wanted {size}"
        for name, size in wanted.items()
        if received[name] != size
    ]
    if differ:
        raise ValueError(
            "The sizes of `layer` differ from those of `source`. Make it with "
            f"those that are wanted. Received: {'; '.join(differ)}."
        )


# What `copy_language_model` needs. The package does not import keras-hub.


def _is_qwen3(model):
    return any(x.__name__ == "Qwen3Backbone" for x in type(model).__mro__)


def _longest(model):
    return 0 if _is_qwen3(model) else model.max_length


def _language_model(model):
    """What must be the same in both models, by the names that ours has."""
    config = model.get_config()
    if not _is_qwen3(model):
        attention = model.blocks[0].self_attention
        for name in ("name", "trainable", "dtype", "dropout", "max_length"):
            config.pop(name, None)
        frequencies, epsilon = config["frequencies"], config["epsilon"]
        return {
            **config,
            "key_dim": attention.key_dim,
            "num_kv_heads": attention.num_kv_heads,
            "frequencies": _rounded(frequencies),
            "epsilon": float(epsilon),
        }
    frequencies = rotary_frequencies(
        config["head_dim"], config["rope_max_wavelength"]
    )
    return {
        "vocab_size": config["vocabulary_size"],
        "dim": config["hidden_dim"],
        "num_layers": config["num_layers"],
        "num_heads": config["num_query_heads"],
        "num_kv_heads": config["num_key_value_heads"],
        "key_dim": config["head_dim"],
        "ffn_dim": config["intermediate_dim"],
        "frequencies": _rounded(frequencies / config["rope_scaling_factor"]),
        "window": config["sliding_window_size"],
        "use_sinks": False,
        "use_gate": False,
        "soft_cap": None,
        "tie_embeddings": config["tie_word_embeddings"],
        "epsilon": float(config["layer_norm_epsilon"]),
    }


def _rounded(frequencies):
    return [float(f"{x:.6g}") for x in frequencies]


def _places(model):
    """Dict of the names that keras-hub has to a model's variables."""
    if _is_qwen3(model):
        return {x.path: x for x in model.weights}
    places = {
        "token_embedding/embeddings": model.embedding.embeddings,
        "sequence_output_layernorm/scale": model.final_norm.scale,
    }
    if not model.tie_embeddings:
        kernel = model.output_layer.kernel
        places["token_embedding/reverse_embeddings"] = kernel
    for i, block in enumerate(model.blocks):
        attention, ffn = block.self_attention, block.ffn
        norms = {
            "self_attention/query_dense_layernorm": attention.query_norm,
            "self_attention/key_dense_layernorm": attention.key_norm,
            "self_attention_layernorm": block.self_attention_norm.norm,
            "feedforward_layernorm": block.ffn_norm.norm,
        }
        dense = {
            "self_attention/query": attention.query_layer,
            "self_attention/key": attention.key_layer,
            "self_attention/value": attention.value_layer,
            "self_attention/attention_output": attention.output_layer,
            "feedforward_gate_dense": ffn.gate,
            "feedforward_intermediate_dense": ffn.hidden,
            "feedforward_output_dense": ffn.output_layer,
        }
        start = f"transformer_layer_{i}"
        for name, layer in norms.items():
            places[f"{start}/{name}/scale"] = layer.scale
        for name, layer in dense.items():
            places[f"{start}/{name}/kernel"] = layer.kernel
    return places


# What `copy_with_dense_attention` needs.


def _parts(layer):
    """A layer or model, and all layers that it holds; of an operation none.

    Keras has this walk as a private method only: its public `model.layers`
    lists the parts of a model, and other layers have no such list.
    """
    is_layer = isinstance(layer, keras.Layer)
    return list(layer._flatten_layers()) if is_layer else []


def _flash_layers(layer):
    return [x for x in _parts(layer) if isinstance(x, FlashAttention)]


def _with_dense_layers(layer, is_called=False):
    """The layer made again from its config, where flash layers are dense.

    It is built, unless it will be built because it is called.
    """
    try:
        config = keras.saving.serialize_keras_object(layer)
        if is_called:
            config.pop("build_config", None)
        return keras.saving.deserialize_keras_object(
            keras.tree.traverse(_dense_config, config),
            custom_objects={type(x).__name__: type(x) for x in _parts(layer)},
        )
    except (NotImplementedError, TypeError, ValueError) as error:
        raise ValueError(
            "A copy needs each layer to be made again from its config, as "
            f"when it is loaded from a file. Received: {_named(layer)}, "
            f"where this fails: {error}"
        ) from error


def _dense_config(config):
    """What stands for a flash layer's config; None: go on inside."""
    flash = keras.saving.get_registered_name(FlashAttention)
    if not isinstance(config, dict) or config.get("registered_name") != flash:
        return None
    arguments = {**config["config"]}
    del arguments["block_size"]
    dense = MultiHeadAttention.from_config(arguments)
    return {**config, **keras.saving.serialize_keras_object(dense)}


def _copy_weights(new, layer):
    """Copy the weights of a layer into the layer made from its config."""
    if flash := _flash_layers(new):
        raise ValueError(
            "A flash layer is replaced if its class is FlashAttention and the "
            "config of the layer that holds it has it. Received: "
            f"{_named(layer)}, whose copy still holds {_named(flash[0])}. Let "
            "its constructor take the attention layer and `get_config` return "
            "it, or make a MultiHeadAttention there."
        )
    if not isinstance(layer, keras.Layer):
        return  # an operation, which has no weights
    shapes, new_shapes = (
        [tuple(x.shape) for x in each.weights] for each in (layer, new)
    )
    if shapes != new_shapes:
        raise ValueError(
            "A layer must have the same weights when it is made again from "
            f"its config. Received: {_named(layer)} with weights of shapes "
            f"{shapes}, and {new_shapes} when it is made again. (LoRA and "
            "quantized weights do not stand in a config.)"
        )
    new.set_weights(layer.get_weights())


def _named(layer):
    return f"{type(layer).__name__} {layer.name!r}"
