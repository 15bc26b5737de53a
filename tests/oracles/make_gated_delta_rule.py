"""Write what transformers' gated delta rule computes, for the tests.

    python tests/oracles/make_gated_delta_rule.py

needs PyTorch and transformers (made with 2.13 and 5.24) and writes
`gated_delta_rule.npz` beside this file. The tests read the file alone. It
holds

    query, key       `(B, T, H, K)`, which the functions divide by their
                     lengths, and queries also by √K
    value            `(B, T, H, V)`
    log_decay, strength   `(B, T, H)`; their names are g and beta
    state            `(B, H, K, V)`, before the first token
    chunked/output, chunked/state         in chunks of 64, a ragged last one
    recurrent/output, recurrent/state     token by token
"""

from pathlib import Path

import numpy as np
import torch
from transformers.models.qwen3_5 import modeling_qwen3_5 as qwen

B, T, H, K, V = 2, 83, 3, 7, 5


def main():
    random = np.random.default_rng(0)
    inputs = {
        "query": random.normal(size=(B, T, H, K)),
        "key": random.normal(size=(B, T, H, K)),
        "value": random.normal(size=(B, T, H, V)),
        "log_decay": -random.exponential(size=(B, T, H)) / 5,
        "strength": random.uniform(size=(B, T, H)),
        "state": random.normal(size=(B, H, K, V)),
    }
    inputs = {name: x.astype("float32") for name, x in inputs.items()}
    *parts, state = (torch.tensor(x) for x in inputs.values())
    answers = {}
    for name, function in (
        ("chunked", qwen.torch_chunk_gated_delta_rule),
        ("recurrent", qwen.torch_recurrent_gated_delta_rule),
    ):
        output, last = function(
            *parts,
            initial_state=state,
            output_final_state=True,
            use_qk_l2norm_in_kernel=True,
        )
        answers[f"{name}/output"] = output.numpy()
        answers[f"{name}/state"] = last.numpy()
    path = Path(__file__).with_name("gated_delta_rule.npz")
    np.savez_compressed(path, **inputs, **answers)


if __name__ == "__main__":
    main()
