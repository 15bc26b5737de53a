"""Attention in Keras 3: a course that runs, and the layers behind it."""

from d2l_attention._quiet import import_backend

import_backend()

from d2l_attention.bahdanau import BahdanauSeq2Seq  # noqa: E402
from d2l_attention.blocks import (  # noqa: E402
    AddNorm,
    PositionWiseFFN,
    TransformerDecoderBlock,
    TransformerEncoderBlock,
)
from d2l_attention.decoding import BeamDecoder, GreedyDecoder  # noqa: E402
from d2l_attention.efficient.block_manager import (  # noqa: E402
    BlockManager,
    OutOfBlocksError,
)
from d2l_attention.efficient.flash import (  # noqa: E402
    FlashAttention,
    flash_attention,
)
from d2l_attention.efficient.linformer import (  # noqa: E402
    LinformerAttention,
    linformer_attention,
)
from d2l_attention.efficient.longformer import (  # noqa: E402
    LongformerAttention,
    longformer_attention,
    longformer_mask,
)
from d2l_attention.efficient.multi_query import (  # noqa: E402
    GroupedQueryAttention,
    MultiQueryAttention,
    grouped_scores,
    grouped_sum,
    share_heads,
)
from d2l_attention.efficient.page_local import (  # noqa: E402
    PageLocalAttention,
    page_local_attention,
    page_mask,
)
from d2l_attention.efficient.paged import (  # noqa: E402
    PagedKVCache,
    paged_attention,
)
from d2l_attention.efficient.performer import (  # noqa: E402
    PerformerAttention,
    log_features,
    orthogonal_directions,
    performer_attention,
    performer_weights,
)
from d2l_attention.efficient.reformer import (  # noqa: E402
    ReformerAttention,
    lsh_buckets,
    reformer_attention,
    reformer_mask,
)
from d2l_attention.kernel_regression import (  # noqa: E402
    NWKernelRegression,
    nadaraya_watson,
)
from d2l_attention.language_model import (  # noqa: E402
    CausalBlock,
    LanguageModel,
)
from d2l_attention.masking import (  # noqa: E402
    causal_mask,
    masked_softmax,
    padding_mask,
    window_mask,
)
from d2l_attention.multi_head import (  # noqa: E402
    MultiHeadAttention,
    multi_head_scores,
    multi_head_sum,
)
from d2l_attention.positional_encoding import (  # noqa: E402
    LearnedPositionalEncoding,
    PositionalEncoding,
    sinusoidal_encoding,
)
from d2l_attention.rnnsearch import (  # noqa: E402
    RNNSearch,
)
from d2l_attention.scoring import (  # noqa: E402
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
from d2l_attention.seq2seq import FixedContextSeq2Seq  # noqa: E402
from d2l_attention.transformer import (  # noqa: E402
    Transformer,
    TransformerDecoder,
    TransformerEncoder,
)
from d2l_attention.variants.context import (  # noqa: E402
    ContextAttention,
    ContextGate,
    DynamicContextAttention,
    GlobalContextAttention,
    mean_context,
    segment_context,
)
from d2l_attention.variants.graph import (  # noqa: E402
    GATAttention,
    GATv2Attention,
    GraphDotProductAttention,
    adjacency_to_edges,
    edge_softmax,
)
from d2l_attention.variants.hard import (  # noqa: E402
    HardAttention,
    MovingBaseline,
    log_probability,
    most_likely_locations,
    reinforce_loss,
    sample_locations,
)
from d2l_attention.variants.hierarchical import (  # noqa: E402
    AttentionPooling,
    HierarchicalAttentionNetwork,
)
from d2l_attention.variants.pointer import (  # noqa: E402
    PointerNetwork,
)
from d2l_attention.variants.structured import (  # noqa: E402
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
    "grouped_scores",
    "grouped_sum",
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
    "multi_head_scores",
    "multi_head_sum",
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
