"""Every public layer that is no model, with what it takes to call it.

A layer that is exported and stands in no table here fails
`test_every_public_layer_is_listed`, so the tests that go through all of them
cannot forget one.
"""

import d2l_attention
import keras
import pytest

SELF_ATTENTION = {
    "ALiBiAttention": {"num_heads": 2, "key_dim": 3},
    "AdditiveAttention": {"units": 3},
    "BilinearAttention": {},
    "ConcatAttention": {"units": 3},
    "NativeSparseAttention": {
        "num_heads": 2,
        "key_dim": 4,
        "block_size": 2,
        "top": 2,
        "window": 3,
    },
    "DotProductAttention": {},
    "FlashAttention": {"num_heads": 2, "key_dim": 3},
    "GroupedQueryAttention": {
        "num_heads": 4,
        "num_kv_heads": 2,
        "key_dim": 3,
    },
    "HardAttention": {"seed": 0},
    "IndexedAttention": {
        "num_heads": 2,
        "key_dim": 4,
        "top": 2,
        "index_heads": 2,
        "index_dim": 3,
    },
    "LatentAttention": {
        "num_heads": 2,
        "key_dim": 3,
        "latent_dim": 5,
        "rotary_dim": 4,
    },
    "LinformerAttention": {
        "num_heads": 2,
        "key_dim": 3,
        "max_length": 7,
        "rank": 6,
    },
    "MultiHeadAttention": {"num_heads": 2, "key_dim": 3},
    "MultiQueryAttention": {"num_heads": 2, "key_dim": 3},
    "NWKernelRegression": {},
    "PerformerAttention": {
        "num_heads": 2,
        "key_dim": 3,
        "num_features": 7,
        "seed": 0,
    },
    "RotaryAttention": {"num_heads": 2, "key_dim": 4},
    "SelectedBlockAttention": {
        "num_heads": 2,
        "key_dim": 4,
        "block_size": 2,
        "top": 2,
    },
    "SinkAttention": {"num_heads": 2, "key_dim": 4, "window": 3},
    "StreamingAttention": {"num_heads": 2, "key_dim": 4, "window": 3},
    "StructuredAttention": {},
    "T5Attention": {"num_heads": 2, "key_dim": 3},
    "ModernAttention": {
        "num_heads": 4,
        "key_dim": 4,
        "num_kv_heads": 2,
        "window": 3,
        "use_gate": True,
        "soft_cap": 5.0,
    },
    "WindowAttention": {"num_heads": 2, "key_dim": 4, "window": 3},
}  # with key and value too
OWN_PATTERN = {
    "AttentionBlock": {
        "attention": d2l_attention.RotaryAttention(num_heads=2, key_dim=4),
        "dim": 4,
        "ffn_dim": 7,
    },
    "CausalBlock": {"dim": 4, "num_heads": 2, "ffn_dim": 7},
    "DecayedAttention": {"num_heads": 2, "key_dim": 3},
    "DeltaAttention": {"num_heads": 2, "key_dim": 3},
    "DynamicContextAttention": {"num_heads": 2, "key_dim": 3},
    "GatedDeltaAttention": {"num_heads": 2, "key_dim": 3},
    "GatedLinearAttention": {"num_heads": 2, "key_dim": 3},
    "GlobalContextAttention": {"num_heads": 2, "key_dim": 3},
    "LinearAttention": {"num_heads": 2, "key_dim": 3},
    "LongformerAttention": {"num_heads": 2, "key_dim": 3, "window": 1},
    "PageLocalAttention": {"num_heads": 2, "key_dim": 3, "page_size": 2},
    "ReformerAttention": {
        "num_heads": 2,
        "key_dim": 3,
        "chunk_size": 2,
        "num_buckets": 2,
        "seed": 0,
    },
    "ModernBlock": {"dim": 4, "num_heads": 2, "ffn_dim": 7, "use_gate": True},
    "TransformerEncoder": {
        "dim": 4,
        "num_layers": 2,
        "num_heads": 2,
        "ffn_dim": 7,
        "max_length": 11,
    },
    "TransformerEncoderBlock": {"dim": 4, "num_heads": 2, "ffn_dim": 7},
}  # self-attention only
DECODERS = {
    "TransformerDecoder": {
        "dim": 4,
        "num_layers": 2,
        "num_heads": 2,
        "ffn_dim": 7,
        "max_length": 11,
    },
    "TransformerDecoderBlock": {"dim": 4, "num_heads": 2, "ffn_dim": 7},
}
CONTEXT = {"ContextAttention": {"num_heads": 2, "key_dim": 3}}
POSITION_WISE = {
    "AttentionPooling": {"units": 3},
    "LearnedPositionalEncoding": {"max_length": 11},
    "LearnedQueryAttention": {"num_queries": 3, "num_heads": 2, "key_dim": 3},
    "PositionWiseFFN": {"ffn_dim": 7},
    "PositionalEncoding": {"max_length": 11},
    "SwiGLU": {"ffn_dim": 7},
}
GRAPHS = {
    "GATAttention": {"num_heads": 2, "key_dim": 3},
    "GATv2Attention": {"num_heads": 2, "key_dim": 3},
    "GraphDotProductAttention": {"num_heads": 2, "key_dim": 3},
}  # exempt from masks: their edges say who sees whom
OTHERS = {
    "AddNorm": {},
    "ContextGate": {},
    "MovingBaseline": {},
    "PatchEmbedding": {"patch_size": 2, "dim": 5},
}

ALWAYS_CAUSAL = {
    "AttentionBlock",
    "CausalBlock",
    "NativeSparseAttention",
    "DecayedAttention",
    "DeltaAttention",
    "GatedDeltaAttention",
    "GatedLinearAttention",
    "IndexedAttention",
    "LinearAttention",
    "SelectedBlockAttention",
    "SinkAttention",
    "ModernAttention",
    "ModernBlock",
    "WindowAttention",
}  # no call of theirs sees a later token

# One layer of each mechanism, for the other backends. What differs between
# layers of one mechanism is no backend's matter.
MECHANISMS = {
    "AdditiveAttention",
    "NativeSparseAttention",
    "ContextAttention",
    "FlashAttention",
    "GATAttention",
    "GatedDeltaAttention",
    "HardAttention",
    "IndexedAttention",
    "LatentAttention",
    "LearnedQueryAttention",
    "LinformerAttention",
    "LongformerAttention",
    "MultiHeadAttention",
    "PerformerAttention",
    "ReformerAttention",
    "SelectedBlockAttention",
    "StructuredAttention",
    "T5Attention",
    "ModernBlock",
    "TransformerDecoderBlock",
    "TransformerEncoderBlock",
}


def on_every_backend(cases):
    """Names, or tuples that begin with one; all backends run the mechanisms."""
    for case in cases:
        values = (case,) if isinstance(case, str) else case
        everywhere = values[0] in MECHANISMS
        marks = [pytest.mark.every_backend] if everywhere else []
        yield pytest.param(*values, marks=marks)


ARGUMENTS = {
    **SELF_ATTENTION,
    **OWN_PATTERN,
    **DECODERS,
    **CONTEXT,
    **POSITION_WISE,
    **GRAPHS,
    **OTHERS,
}


def public_layers():
    """Name → class of every exported layer that is no model."""
    exported = {n: getattr(d2l_attention, n) for n in d2l_attention.__all__}
    return {
        name: found
        for name, found in exported.items()
        if isinstance(found, type)
        and issubclass(found, keras.Layer)
        and not issubclass(found, keras.Model)
    }


def make(name, **more):
    return public_layers()[name](**ARGUMENTS[name], **more)
