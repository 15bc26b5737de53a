"""The Transformer against the same model of torch's layers, CPU only.

    python -m pytest tests/benchmarks/test_torch_transformer_speed.py \
        --benchmark-only -o addopts=""

torch's batches are tensors before the clock starts; ours come from
`tf.data`. Ours compiles the whole step. `torch.compile(model)`, as its users
write it, compiles the forward and the backward pass; the loss and Adam stay
eager. Each library has the threads that it takes by itself.
"""

from d2l_attention import Transformer, sinusoidal_encoding
import pytest
from test_training_speed import add_speeds, batches, trainer
from test_transformer_speed import (
    DOCUMENTS,
    LENGTH,
    REALISTIC,
    VOCAB_SIZE,
    long_batches,
)

torch = pytest.importorskip("torch")
nn = torch.nn
# torch looks for a GPU at its first backward pass, and finds none.
pytestmark = pytest.mark.filterwarnings("ignore:CUDA initialization")


class OfTorchLayers(nn.Module):
    """Its attention has biases, ours none."""

    def __init__(
        self, source_size, target_size, dim, num_layers, num_heads, ffn_dim
    ):
        super().__init__()
        self.source_embedding = nn.Embedding(source_size, dim)
        self.target_embedding = nn.Embedding(target_size, dim)
        for embedding in (self.source_embedding, self.target_embedding):
            nn.init.normal_(embedding.weight, std=dim**-0.5)  # as ours
        positions = torch.tensor(sinusoidal_encoding(LENGTH, dim))
        self.register_buffer("positions", positions)
        sizes = {"dropout": 0.0, "batch_first": True}
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(dim, num_heads, ffn_dim, **sizes),
            num_layers,
        )
        self.decoder = nn.TransformerDecoder(
            nn.TransformerDecoderLayer(dim, num_heads, ffn_dim, **sizes),
            num_layers,
        )
        self.output_layer = nn.Linear(dim, target_size)

    def embed(self, ids, embedding):
        x = embedding(ids) * embedding.embedding_dim**0.5
        return x + self.positions[: ids.shape[1]]

    def forward(self, source, target):
        padding = source == 0
        x = self.embed(source, self.source_embedding)
        x = self.encoder(x, src_key_padding_mask=padding)
        y = self.embed(target, self.target_embedding)
        y = self.decoder(
            y,
            x,
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(y.shape[1]),
            tgt_is_causal=True,
            memory_key_padding_mask=padding,
        )
        return self.output_layer(y)
