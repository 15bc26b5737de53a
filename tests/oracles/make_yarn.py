"""Write the frequencies that models with YaRN have, for the tests.

    python tests/oracles/make_yarn.py

needs PyTorch and transformers (made with 5.24) and writes `yarn.npz` beside
this file: for each set of parameters its frequencies and its magnitude, as
`ROPE_INIT_FUNCTIONS["yarn"]` computes them. The tests read the file alone. It
holds

    NAME/parameters   width, factor, trained length, base, whether truncated,
                      mscale and mscale_all_dim
    NAME/frequencies  float64 `(P/2,)`, computed in float32
    NAME/magnitude    float64
"""

from pathlib import Path

import numpy as np
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

SETS = {  # width, factor, trained length, base, truncated, mscale, of all
    "gpt_oss": (64, 32, 4096, 150_000, False, None, None),
    "deepseek": (64, 40, 4096, 10_000, True, 1.0, 1.0),
    "deepseek_v2_lite": (64, 40, 4096, 10_000, True, 0.707, 0.707),
    "unequal_scales": (32, 16, 2048, 10_000, True, 1.0, 0.5),
    "all_below": (16, 4, 16, 10_000, True, None, None),
    "no_ramp": (16, 4, 6, 10_000, True, None, None),
}

arrays = {}
for name, chosen in SETS.items():
    width, factor, length, base, truncated, mscale, of_all = chosen
    scales = {"mscale": mscale, "mscale_all_dim": of_all} if mscale else {}
    config = LlamaConfig(
        hidden_size=width,
        num_attention_heads=1,
        max_position_embeddings=factor * length,
        rope_parameters={
            "rope_type": "yarn",
            "rope_theta": float(base),
            "factor": float(factor),
            "original_max_position_embeddings": length,
            "truncate": truncated,
            **scales,
        },
    )
    frequencies, magnitude = ROPE_INIT_FUNCTIONS["yarn"](config, "cpu")
    chosen = [np.nan if x is None else x for x in chosen]
    arrays[f"{name}/parameters"] = np.array(chosen, "float64")
    arrays[f"{name}/frequencies"] = frequencies.numpy().astype("float64")
    arrays[f"{name}/magnitude"] = np.array(magnitude, "float64")
np.savez_compressed(Path(__file__).with_name("yarn.npz"), **arrays)
