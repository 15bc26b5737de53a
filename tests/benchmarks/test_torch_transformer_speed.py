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


def trainer_of_torch(model, data, compiled=False):
    """Trains on batches that are ready; without arguments, run once."""
    batches = [
        tuple(torch.tensor(x).long() for x in (*inputs.values(), labels))
        for inputs, labels, _ in data.as_numpy_iterator()
    ]
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    call = torch.compile(model) if compiled else model

    def run():
        for source, target, labels in batches:
            logits = call(source, target).flatten(0, 1)
            loss = nn.functional.cross_entropy(
                logits, labels.flatten(), ignore_index=0
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    run()  # compiles
    return run


def rivals_of_torch(ours, sizes, widths, data):
    """Both as large as ours, biases of the attention apart."""
    # The sizes of an earlier model would count as ones that may change.
    torch.compiler.reset()
    models = [OfTorchLayers(*sizes, **widths) for _ in range(2)]
    counted = sum(
        parameter.numel()
        for name, parameter in models[0].named_parameters()
        if not name.endswith(("in_proj_bias", "out_proj.bias"))
    )
    assert counted == ours.count_params()
    return {
        "torch, eager": trainer_of_torch(models[0], data),
        "torch, compiled": trainer_of_torch(models[1], data, compiled=True),
    }


@pytest.mark.parametrize(
    "what, widths, least",
    [
        ("the documents' Transformer", DOCUMENTS, 1.0),
        ("4 layers of 256", REALISTIC, 0.9),
    ],
)
def test_training_keeps_up_with_torch(what, widths, least, race, table):
    if widths is DOCUMENTS:
        data, sizes, tokens = batches()
    else:
        (data, tokens), sizes = long_batches(), (VOCAB_SIZE, VOCAB_SIZE)
    ours = Transformer(*sizes, **widths, max_length=LENGTH)
    run = trainer(ours, data)
    seconds, rivals = race(run, rivals_of_torch(ours, sizes, widths, data))
    add_speeds(table, f"training {what}", tokens, seconds, rivals)
    assert min(rivals.values()) / seconds >= least
