"""What a Transformer is stacked from."""

from d2l_attention.models.blocks.causal import CausalBlock
from d2l_attention.models.blocks.decoder import TransformerDecoderBlock
from d2l_attention.models.blocks.encoder import TransformerEncoderBlock
from d2l_attention.models.blocks.sublayers import AddNorm, PositionWiseFFN

__all__ = [
    "AddNorm",
    "CausalBlock",
    "PositionWiseFFN",
    "TransformerDecoderBlock",
    "TransformerEncoderBlock",
]
