"""Attention in Keras 3: a course that runs, and the layers behind it."""

from d2l_attention._quiet import import_backend

import_backend()

from d2l_attention.layers.blocks import (
    AddNorm,
    AttentionBlock,
    CausalBlock,
    PositionWiseFFN,
    TransformerDecoderBlock,
    TransformerEncoderBlock,
)
from d2l_attention.layers.context import (
    ContextAttention,
    ContextGate,
    DynamicContextAttention,
    GlobalContextAttention,
)
from d2l_attention.layers.dsa import IndexedAttention, index_scores
from d2l_attention.layers.flash import (
    FlashAttention,
    flash_attention,
)
from d2l_attention.layers.graph import (
    GATAttention,
    GATv2Attention,
    GraphDotProductAttention,
)
from d2l_attention.layers.hard import (
    HardAttention,
    MovingBaseline,
    reinforce_loss,
)
from d2l_attention.layers.images import (
    LearnedQueryAttention,
    PatchEmbedding,
    contrastive_loss,
    patches,
)
from d2l_attention.layers.kernel_regression import (
    NWKernelRegression,
    nadaraya_watson,
)
from d2l_attention.layers.latent import (
    LatentAttention,
    absorbed_latent_attention,
    expanded_latent_attention,
)
from d2l_attention.layers.linear import (
    DecayedAttention,
    DeltaAttention,
    GatedDeltaAttention,
    GatedLinearAttention,
    LinearAttention,
    delta_attention,
    linear_attention,
    linear_attention_weights,
    recurrent_attention,
)
from d2l_attention.layers.linformer import (
    LinformerAttention,
    linformer_attention,
)
from d2l_attention.layers.longformer import (
    LongformerAttention,
    longformer_attention,
)
from d2l_attention.layers.masking import (
    causal_mask,
    masked_softmax,
    padding_mask,
    window_mask,
)
from d2l_attention.layers.moba import (
    SelectedBlockAttention,
    block_means,
    block_scores,
    expand_blocks,
    select_blocks,
    selected_block_attention,
)
from d2l_attention.layers.modern_block import (
    ModernAttention,
    ModernBlock,
    SwiGLU,
    attend_over_depth,
    sigmoid_weights,
    soft_cap,
    sparsemax,
)
from d2l_attention.layers.multi_head import (
    MultiHeadAttention,
    multi_head_attention,
)
from d2l_attention.layers.multi_query import (
    GroupedQueryAttention,
    MultiQueryAttention,
    grouped_query_attention,
)
from d2l_attention.layers.nsa import NativeSparseAttention
from d2l_attention.layers.page_local import (
    PageLocalAttention,
    page_local_attention,
)
from d2l_attention.layers.paged import (
    PagedKVCache,
    paged_attention,
)
from d2l_attention.layers.performer import (
    PerformerAttention,
    performer_attention,
)
from d2l_attention.layers.pooling import AttentionPooling
from d2l_attention.layers.positional_encoding import (
    LearnedPositionalEncoding,
    PositionalEncoding,
    sinusoidal_encoding,
)
from d2l_attention.layers.reformer import (
    ReformerAttention,
    reformer_attention,
)
from d2l_attention.layers.relative_positions import (
    ALiBiAttention,
    RotaryAttention,
    T5Attention,
    alibi_bias,
    alibi_slopes,
    rotary_frequencies,
    rotate,
)
from d2l_attention.layers.scoring import (
    AdditiveAttention,
    BilinearAttention,
    ConcatAttention,
    DotProductAttention,
)
from d2l_attention.layers.structured import (
    StructuredAttention,
    linear_chain_marginals,
)
from d2l_attention.layers.windows_and_sinks import (
    SinkAttention,
    StreamingAttention,
    WindowAttention,
    add_sinks,
    sink_attention,
)
from d2l_attention.models.bahdanau import BahdanauSeq2Seq
from d2l_attention.models.decoding import BeamDecoder, GreedyDecoder
from d2l_attention.models.hierarchical import HierarchicalAttentionNetwork
from d2l_attention.models.images import (
    ContrastivePair,
    VisionTransformer,
)
from d2l_attention.models.language_model import (
    BlockLanguageModel,
    LanguageModel,
    ModernLanguageModel,
)
from d2l_attention.models.pointer_network import (
    PointerNetwork,
)
from d2l_attention.models.rnnsearch import (
    RNNSearch,
)
from d2l_attention.models.seq2seq import FixedContextSeq2Seq
from d2l_attention.models.transformer import (
    Transformer,
    TransformerDecoder,
    TransformerEncoder,
)

__all__ = [
    "ALiBiAttention",
    "AddNorm",
    "AdditiveAttention",
    "AttentionBlock",
    "AttentionPooling",
    "BahdanauSeq2Seq",
    "BeamDecoder",
    "BilinearAttention",
    "BlockLanguageModel",
    "CausalBlock",
    "ConcatAttention",
    "ContextAttention",
    "ContextGate",
    "ContrastivePair",
    "DecayedAttention",
    "DeltaAttention",
    "DotProductAttention",
    "DynamicContextAttention",
    "FixedContextSeq2Seq",
    "FlashAttention",
    "GATAttention",
    "GATv2Attention",
    "GatedDeltaAttention",
    "GatedLinearAttention",
    "GlobalContextAttention",
    "GraphDotProductAttention",
    "GreedyDecoder",
    "GroupedQueryAttention",
    "HardAttention",
    "HierarchicalAttentionNetwork",
    "IndexedAttention",
    "LanguageModel",
    "LatentAttention",
    "LearnedPositionalEncoding",
    "LearnedQueryAttention",
    "LinearAttention",
    "LinformerAttention",
    "LongformerAttention",
    "ModernAttention",
    "ModernBlock",
    "ModernLanguageModel",
    "MovingBaseline",
    "MultiHeadAttention",
    "MultiQueryAttention",
    "NWKernelRegression",
    "NativeSparseAttention",
    "PageLocalAttention",
    "PagedKVCache",
    "PatchEmbedding",
    "PerformerAttention",
    "PointerNetwork",
    "PositionWiseFFN",
    "PositionalEncoding",
    "RNNSearch",
    "ReformerAttention",
    "RotaryAttention",
    "SelectedBlockAttention",
    "SinkAttention",
    "StreamingAttention",
    "StructuredAttention",
    "SwiGLU",
    "T5Attention",
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderBlock",
    "TransformerEncoder",
    "TransformerEncoderBlock",
    "VisionTransformer",
    "WindowAttention",
    "absorbed_latent_attention",
    "add_sinks",
    "alibi_bias",
    "alibi_slopes",
    "attend_over_depth",
    "block_means",
    "block_scores",
    "causal_mask",
    "contrastive_loss",
    "delta_attention",
    "expand_blocks",
    "expanded_latent_attention",
    "flash_attention",
    "grouped_query_attention",
    "index_scores",
    "linear_attention",
    "linear_attention_weights",
    "linear_chain_marginals",
    "linformer_attention",
    "longformer_attention",
    "masked_softmax",
    "multi_head_attention",
    "nadaraya_watson",
    "padding_mask",
    "page_local_attention",
    "paged_attention",
    "patches",
    "performer_attention",
    "recurrent_attention",
    "reformer_attention",
    "reinforce_loss",
    "rotary_frequencies",
    "rotate",
    "select_blocks",
    "selected_block_attention",
    "sigmoid_weights",
    "sink_attention",
    "sinusoidal_encoding",
    "soft_cap",
    "sparsemax",
    "window_mask",
]
