"""Copy weights from PyTorch's Transformer layers.

PyTorch keeps a kernel as (out, in), Keras as (in, out), so each kernel is
transposed. PyTorch stacks W_q, W_k and W_v into one array. The order of the
heads is the same in both: head h owns features hK … (h + 1)K − 1.

A state_dict does not hold `nhead`, `activation`, `norm_first` and
`layer_norm_eps`, so you make the block with the same `num_heads`,
`activation`, `normalize_first` and `epsilon`. PyTorch's layers have biases by
default, in attention too; our blocks have those with `use_bias=True`.
`batch_first` makes no difference to the weights.
"""

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
        return np.asarray(value, "float64")
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
