"""Write what PyTorch's own Transformer layers compute, for the tests.

    python tests/oracles/make_torch_layers.py

needs PyTorch (made with 2.13) and writes `torch_*.npz` beside this file. The
tests read the files alone. Each holds

    options           JSON: what our block is made with
    call              JSON: `use_causal_mask`, where it is an encoder's
    state_dict/NAME   the layer's weights
    query, key        inputs; the key (the encoder's output) for decoders
    query_mask, key_mask   where there are, True at tokens
    output            the layer's output in evaluation mode
"""

import json
from pathlib import Path

import numpy as np
import torch
from torch import nn

DIM, NUM_HEADS, FFN_DIM = 12, 3, 20
B, T, S = 2, 5, 7
# A key that is masked need not be the last one.
TARGET_MASK = np.array([[1, 1, 1, 0, 0], [1, 1, 0, 1, 1]], bool)
SOURCE_MASK = np.array([[0, 1, 1, 0, 1, 1, 1], [1, 1, 1, 1, 1, 1, 0]], bool)

# name: activation, norm_first, bias, and the masks an encoder layer gets
ENCODERS = {
    "post_norm_relu": ("relu", False, True, ["padding"]),
    "post_norm_gelu_no_bias": ("gelu", False, False, []),
    "pre_norm_relu_no_bias": ("relu", True, False, ["causal"]),
    "pre_norm_gelu": ("gelu", True, True, ["padding", "causal"]),
}
# The same of decoders, which are always causal.
DECODERS = {
    "post_norm_relu": ("relu", False, True, ["cross"]),
    "post_norm_gelu_no_bias": ("gelu", False, False, ["padding", "cross"]),
    "pre_norm_relu_no_bias": ("relu", True, False, []),
    "pre_norm_gelu": ("gelu", True, True, ["padding", "cross"]),
}


def make_layer(layer_class, activation, norm_first, bias):
    """In evaluation mode, with no weight left at 0 or 1."""
    layer = layer_class(
        DIM,
        NUM_HEADS,
        FFN_DIM,
        activation=activation,
        norm_first=norm_first,
        bias=bias,
        layer_norm_eps=1e-3 if norm_first else 1e-5,
        batch_first=True,
    )
    for weight in layer.parameters():
        # About as large as PyTorch's own: the tests' tolerance is absolute.
        nn.init.normal_(weight, mean=0.2, std=0.4)
    return layer.eval()


def encode(layer, masks):
    arrays = {"query": torch.randn(B, T, DIM)}
    options = {}
    if "padding" in masks:
        arrays["query_mask"] = torch.tensor(TARGET_MASK)
        options["src_key_padding_mask"] = ~arrays["query_mask"]
    if "causal" in masks:
        options["src_mask"] = future(T)
    output = layer(arrays["query"], **options)
    return {**arrays, "output": output}


def decode(layer, masks):
    arrays = {"query": torch.randn(B, T, DIM), "key": torch.randn(B, S, DIM)}
    options = {"tgt_mask": future(T)}
    if "padding" in masks:
        arrays["query_mask"] = torch.tensor(TARGET_MASK)
        options["tgt_key_padding_mask"] = ~arrays["query_mask"]
    if "cross" in masks:
        arrays["key_mask"] = torch.tensor(SOURCE_MASK)
        options["memory_key_padding_mask"] = ~arrays["key_mask"]
    output = layer(arrays["query"], arrays["key"], **options)
    return {**arrays, "output": output}


def future(size):
    """PyTorch's masks are True where nothing may attend."""
    return torch.ones(size, size, dtype=torch.bool).triu(1)


def save(name, layer, arrays, masks):
    options = {
        "dim": DIM,
        "num_heads": NUM_HEADS,
        "ffn_dim": FFN_DIM,
        "activation": layer.activation.__name__,
        "use_bias": layer.linear1.bias is not None,
        "normalize_first": layer.norm_first,
        "epsilon": layer.norm1.eps,
    }
    call = {"use_causal_mask": True} if "causal" in masks else {}
    weights = {f"state_dict/{k}": x for k, x in layer.state_dict().items()}
    tensors = {**weights, **arrays}
    path = Path(__file__).with_name(f"torch_{name}.npz")
    np.savez(
        path,
        options=json.dumps(options),
        call=json.dumps(call),
        **{k: x.numpy() for k, x in tensors.items()},
    )
    print(f"{path.name}: {path.stat().st_size} bytes")


def main():
    # The fast path computes the same with fused kernels of its own.
    torch.backends.mha.set_fastpath_enabled(False)
    torch.manual_seed(0)
    for kind, layer_class, run, cases in (
        ("encoder", nn.TransformerEncoderLayer, encode, ENCODERS),
        ("decoder", nn.TransformerDecoderLayer, decode, DECODERS),
    ):
        for name, (*options, masks) in cases.items():
            layer = make_layer(layer_class, *options)
            with torch.no_grad():
                arrays = run(layer, masks)
            save(f"{kind}_{name}", layer, arrays, masks)


if __name__ == "__main__":
    main()
