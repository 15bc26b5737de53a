"""Attention in Keras 3: a course that runs, and the layers behind it."""

from d2l_attention._quiet import import_backend

import_backend()

from d2l_attention.decoding import BeamDecoder, GreedyDecoder
from d2l_attention.efficient.block_manager import (
    BlockManager,
    OutOfBlocksError,
)
from d2l_attention.efficient.flash import (
    FlashAttention,
    flash_attention,
)
from d2l_attention.efficient.global_tokens import longformer_mask
from d2l_attention.efficient.linformer import (
    LinformerAttention,
    linformer_attention,
)
from d2l_attention.efficient.longformer import (
    LongformerAttention,
    longformer_attention,
)
from d2l_attention.efficient.lsh import lsh_buckets, reformer_mask
from d2l_attention.efficient.multi_query import (
    GroupedQueryAttention,
    MultiQueryAttention,
    grouped_query_attention,
)
from d2l_attention.efficient.page_local import (
    PageLocalAttention,
    page_local_attention,
    page_mask,
)
from d2l_attention.efficient.paged import (
    PagedKVCache,
    paged_attention,
)
from d2l_attention.efficient.performer import (
    PerformerAttention,
    performer_attention,
    performer_weights,
)
from d2l_attention.efficient.performer_features import (
    log_features,
    orthogonal_directions,
)
from d2l_attention.efficient.reformer import (
    ReformerAttention,
    reformer_attention,
)
from d2l_attention.efficient.shared_heads import share_heads
from d2l_attention.kernel_regression import (
    NWKernelRegression,
    nadaraya_watson,
)
from d2l_attention.masking import (
    causal_mask,
    masked_softmax,
    padding_mask,
    window_mask,
)
from d2l_attention.models.bahdanau import BahdanauSeq2Seq
from d2l_attention.models.blocks import (
    AddNorm,
    CausalBlock,
    PositionWiseFFN,
    TransformerDecoderBlock,
    TransformerEncoderBlock,
)
from d2l_attention.models.decoder import TransformerDecoder
from d2l_attention.models.encoder import TransformerEncoder
from d2l_attention.models.hierarchical import HierarchicalAttentionNetwork
from d2l_attention.models.language_model import LanguageModel
from d2l_attention.models.pointer_network import (
    PointerNetwork,
)
from d2l_attention.models.rnnsearch import (
    RNNSearch,
)
from d2l_attention.models.seq2seq import FixedContextSeq2Seq
from d2l_attention.models.transformer import Transformer
from d2l_attention.multi_head import (
    MultiHeadAttention,
    multi_head_attention,
)
from d2l_attention.positional_encoding import (
    LearnedPositionalEncoding,
    PositionalEncoding,
    sinusoidal_encoding,
)
from d2l_attention.scoring import (
    AdditiveAttention,
    BilinearAttention,
    ConcatAttention,
    DotProductAttention,
    additive_scores,
    bilinear_scores,
    concat_scores,
    dot_product_scores,
    gaussian_scores,
    scaled_dot_product_scores,
)
from d2l_attention.variants.context import (
    ContextAttention,
    ContextGate,
    mean_context,
    segment_context,
)
from d2l_attention.variants.edges import adjacency_to_edges, edge_softmax
from d2l_attention.variants.graph import (
    GATAttention,
    GATv2Attention,
    GraphDotProductAttention,
)
from d2l_attention.variants.hard import (
    HardAttention,
    MovingBaseline,
    log_probability,
    most_likely_locations,
    reinforce_loss,
    sample_locations,
)
from d2l_attention.variants.own_context import (
    DynamicContextAttention,
    GlobalContextAttention,
)
from d2l_attention.variants.pooling import AttentionPooling
from d2l_attention.variants.structured import (
    StructuredAttention,
    linear_chain_marginals,
)

__all__ = [
    "AddNorm",
    "AdditiveAttention",
    "AttentionPooling",
    "BahdanauSeq2Seq",
    "BeamDecoder",
    "BilinearAttention",
    "BlockManager",
    "CausalBlock",
    "ConcatAttention",
    "ContextAttention",
    "ContextGate",
    "DotProductAttention",
    "DynamicContextAttention",
    "FixedContextSeq2Seq",
    "FlashAttention",
    "GATAttention",
    "GATv2Attention",
    "GlobalContextAttention",
    "GraphDotProductAttention",
    "GreedyDecoder",
    "GroupedQueryAttention",
    "HardAttention",
    "HierarchicalAttentionNetwork",
    "LanguageModel",
    "LearnedPositionalEncoding",
    "LinformerAttention",
    "LongformerAttention",
    "MovingBaseline",
    "MultiHeadAttention",
    "MultiQueryAttention",
    "NWKernelRegression",
    "OutOfBlocksError",
    "PageLocalAttention",
    "PagedKVCache",
    "PerformerAttention",
    "PointerNetwork",
    "PositionWiseFFN",
    "PositionalEncoding",
    "RNNSearch",
    "ReformerAttention",
    "StructuredAttention",
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderBlock",
    "TransformerEncoder",
    "TransformerEncoderBlock",
    "additive_scores",
    "adjacency_to_edges",
    "bilinear_scores",
    "causal_mask",
    "concat_scores",
    "dot_product_scores",
    "edge_softmax",
    "flash_attention",
    "gaussian_scores",
    "grouped_query_attention",
    "linear_chain_marginals",
    "linformer_attention",
    "log_features",
    "log_probability",
    "longformer_attention",
    "longformer_mask",
    "lsh_buckets",
    "masked_softmax",
    "mean_context",
    "most_likely_locations",
    "multi_head_attention",
    "nadaraya_watson",
    "orthogonal_directions",
    "padding_mask",
    "page_local_attention",
    "page_mask",
    "paged_attention",
    "performer_attention",
    "performer_weights",
    "reformer_attention",
    "reformer_mask",
    "reinforce_loss",
    "sample_locations",
    "scaled_dot_product_scores",
    "segment_context",
    "share_heads",
    "sinusoidal_encoding",
    "window_mask",
]
