"""Write what gpt-oss's attention in transformers computes, for the tests.

    python tests/oracles/make_gpt_oss.py

needs PyTorch and transformers (made with 5.24) and writes `gpt_oss.npz`
beside this file: the layer's eager attention with random weights, a window of
4, rotation and grouped heads. The tests read the file alone. It holds

    weights/NAME   query, key, value and output projections, their biases, and
                   the sinks, all as PyTorch has them
    x              the input `(B, T, D)`
    window, full   the outputs with the window, and without one
    zero/NAME      weights, input and causal output of PyTorch's
                   `MultiheadAttention(add_zero_attn=True)`, whose softmax has
                   one more score of 0
"""

from pathlib import Path

import numpy as np
import torch
from transformers import GptOssConfig
from transformers.masking_utils import (
    create_causal_mask,
    create_sliding_window_causal_mask,
)
from transformers.models.gpt_oss.modeling_gpt_oss import (
    GptOssAttention,
    GptOssRotaryEmbedding,
)

MASKS = {
    "window": ("sliding_attention", create_sliding_window_causal_mask),
    "full": ("full_attention", create_causal_mask),
}

torch.manual_seed(0)
config = GptOssConfig(
    hidden_size=10,
    num_attention_heads=6,
    num_key_value_heads=3,
    head_dim=4,
    sliding_window=4,
    num_hidden_layers=1,
    rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
    attn_implementation="eager",
)
x = torch.randn(2, 11, config.hidden_size)
positions = torch.arange(x.shape[1])[None]
arrays, first = {"x": x.numpy()}, None
for name, (kind, make_mask) in MASKS.items():
    config.layer_types = [kind]
    layer = GptOssAttention(config, 0).eval()
    for weight in layer.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    first = first or layer.state_dict()
    layer.load_state_dict(first)
    mask = make_mask(
        config=config,
        inputs_embeds=x,
        attention_mask=None,
        cache=None,
        position_ids=positions,
    )
    turns = GptOssRotaryEmbedding(config)(x, positions)
    with torch.no_grad():
        arrays[name] = layer(x, turns, mask)[0].numpy()
arrays |= {f"weights/{k}": v.numpy() for k, v in first.items()}
layer = torch.nn.MultiheadAttention(
    6, 2, bias=False, add_zero_attn=True, batch_first=True
)
x = torch.randn(2, 5, 6)
future = torch.ones(5, 5, dtype=torch.bool).triu(1)
with torch.no_grad():
    output, _ = layer(x, x, x, attn_mask=future)
zero = {**layer.state_dict(), "x": x, "output": output}
arrays |= {f"zero/{k}": v.numpy() for k, v in zero.items()}
np.savez(Path(__file__).parent / "gpt_oss.npz", **arrays)
