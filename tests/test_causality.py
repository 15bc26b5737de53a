"""The future moves nothing: exact zeros in the Jacobian, in every path."""

from contract import draw, to_numpy
from d2l_attention import (
    ALiBiAttention,
    BilinearAttention,
    CausalBlock,
    DotProductAttention,
    FlashAttention,
    GatedDeltaAttention,
    GlobalContextAttention,
    GroupedQueryAttention,
    IndexedAttention,
    LatentAttention,
    LinearAttention,
    LongformerAttention,
    MultiHeadAttention,
    MultiQueryAttention,
    NativeSparseAttention,
    PageLocalAttention,
    PerformerAttention,
    ReformerAttention,
    RotaryAttention,
    SelectedBlockAttention,
    SinkAttention,
    StreamingAttention,
    T5Attention,
    WindowAttention,
    causal_mask,
)
import keras
import numpy as np
import pytest

T = 7
MASK = to_numpy(causal_mask(T))
KEYS = np.array([[True, True, True, False, True, True, False]])


def jacobian(function, x):
    """How far each token of x moves each of the output, `(T, T)`.

    Each output `(D,)` is seen from one direction, in which a movement would
    hide with probability 0.
    """

    def seen(x):
        output = function(x)[0]
        return keras.ops.sum(output * draw(*output.shape, seed=5), -1)  # (T,)

    if keras.backend.backend() == "jax":
        import jax

        full = jax.jacrev(seen)(x)
    elif keras.backend.backend() == "torch":
        import torch

        full = torch.autograd.functional.jacobian(seen, torch.tensor(x))
    else:
        import tensorflow as tf

        x = tf.constant(x)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            output = seen(x)
        full = tape.jacobian(output, x, experimental_use_pfor=False)
    return np.abs(to_numpy(full)[:, 0]).sum(-1)


ATTENTIONS = {
    "dot product": lambda **k: DotProductAttention(**k),
    "bilinear": lambda **k: BilinearAttention(**k),
    "multi-head": lambda **k: MultiHeadAttention(2, 3, **k),
    "grouped-query": lambda **k: GroupedQueryAttention(4, 2, 3, **k),
    "multi-query": lambda **k: MultiQueryAttention(2, 3, **k),
}


@pytest.mark.parametrize("name", ATTENTIONS)
@pytest.mark.parametrize(
    ("asked", "dropout", "key_mask"),
    [(False, 0.0, None), (False, 0.4, KEYS), (True, 0.4, KEYS)],
)
def test_layers_under_the_causal_mask(name, asked, dropout, key_mask):
    layer = ATTENTIONS[name](dropout=dropout)

    def attend(x):
        output = layer(
            x,
            attention_mask=MASK,
            key_mask=key_mask,
            return_attention_scores=asked,
            training=dropout > 0,
        )
        return output[0] if asked else output

    norms = jacobian(attend, draw(1, T, 6))
    assert (np.triu(norms, 1) == 0.0).all(), "the future leaks"
    if dropout == 0:
        assert (norms[np.tril_indices(T)] > 0).sum() >= 20


def test_layers_with_a_causal_form_of_their_own():
    for layer in (
        FlashAttention(2, 3, block_size=3),
        FlashAttention(2, 3),
        PageLocalAttention(2, 3, page_size=2),
        PerformerAttention(2, 3, 8),
        LongformerAttention(2, 3, window=2),
        ReformerAttention(2, 3, 7, num_buckets=1),
        ReformerAttention(2, 3, 4, num_buckets=2, num_rounds=2),
        GlobalContextAttention(2, 3),
        RotaryAttention(2, 4),
        ALiBiAttention(2, 3),
        T5Attention(2, 3),
        WindowAttention(2, 4, window=3),
        SelectedBlockAttention(2, 4, block_size=2, top=2),
        IndexedAttention(2, 4, top=2, index_heads=1, index_dim=3),
        NativeSparseAttention(2, 4, block_size=2, top=2, window=2),
        SinkAttention(2, 4),
        StreamingAttention(2, 4, window=2),
        LatentAttention(2, 3, latent_dim=5, rotary_dim=2),
        LinearAttention(2, 3),
        GatedDeltaAttention(2, 3),
    ):
        norms = jacobian(
            lambda x, f=layer: f(x, key_mask=KEYS, use_causal_mask=True),
            draw(1, T, 6),
        )
        assert (np.triu(norms, 1) == 0.0).all(), layer.name
        assert (norms > 0).sum() >= 10


@pytest.mark.parametrize("num_kv_heads", [None, 1])
@pytest.mark.parametrize("asked", [False, True])
def test_causal_blocks(num_kv_heads, asked):
    block = CausalBlock(6, 2, 5, num_kv_heads=num_kv_heads)
    block.build((None, None, 6))

    def transform(x):
        output = block(x, return_attention_scores=asked)
        return output[0] if asked else output

    norms = jacobian(transform, draw(1, T, 6))
    assert (np.triu(norms, 1) == 0.0).all(), "the future leaks"
    assert (np.diag(norms) > 0).all()


def test_without_the_mask_the_future_does_leak():
    """Or the tests above would pass for any layer."""
    layer = MultiHeadAttention(2, 3)
    assert (np.triu(jacobian(layer, draw(1, T, 6)), 1) > 0).any()
