"""Write what transformers' own latent attention computes, for the tests.

    python tests/oracles/make_latent_attention.py

needs transformers and PyTorch (made with 5.23 and 2.13) and writes
`deepseek_v3_attention.npz` beside this file. The tests read the file alone.
It holds

    options           JSON: what our layer is made with
    state_dict/NAME   the weights of `DeepseekV3Attention`
    query             the input `(B, T, D)`
    output, weights   what it makes of it, each token seeing those up to it
"""

import json
from pathlib import Path

import numpy as np
import torch
from transformers import DeepseekV3Config
from transformers.models.deepseek_v3.modeling_deepseek_v3 import (
    DeepseekV3Attention,
    DeepseekV3RotaryEmbedding,
)

B, T, DIM = 2, 5, 14
OPTIONS = {
    "num_heads": 3,
    "key_dim": 6,
    "latent_dim": 7,
    "rotary_dim": 4,
    "value_dim": 5,
}


def main():
    torch.manual_seed(0)
    config = DeepseekV3Config(
        hidden_size=DIM,
        num_attention_heads=OPTIONS["num_heads"],
        num_key_value_heads=OPTIONS["num_heads"],
        q_lora_rank=None,
        kv_lora_rank=OPTIONS["latent_dim"],
        qk_nope_head_dim=OPTIONS["key_dim"],
        qk_rope_head_dim=OPTIONS["rotary_dim"],
        v_head_dim=OPTIONS["value_dim"],
        max_position_embeddings=16,
        attn_implementation="eager",
    )
    layer = DeepseekV3Attention(config, layer_idx=0).eval()
    for weight in layer.parameters():
        torch.nn.init.normal_(weight, mean=0.1, std=0.5)
    x = torch.randn(B, T, DIM)
    positions = torch.arange(T)[None]
    turns = DeepseekV3RotaryEmbedding(config)(x, positions)
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    mask = torch.zeros(T, T).masked_fill(future, -torch.inf)[None, None]
    with torch.no_grad():
        output, weights = layer(x, turns, mask)
    state = {f"state_dict/{k}": v for k, v in layer.state_dict().items()}
    arrays = {**state, "query": x, "output": output, "weights": weights}
    path = Path(__file__).with_name("deepseek_v3_attention.npz")
    np.savez(
        path,
        options=json.dumps(OPTIONS),
        **{k: v.numpy() for k, v in arrays.items()},
    )
    print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
