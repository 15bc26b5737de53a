"""The README's picture and the book's page: a model made of `keras.layers`.

    python docs/grid.py

The model learns to continue strings of letters that repeat themselves, such
as `heatmpheatmphe`. Nobody tells it where to look. To know what follows a
letter, it has to find the same letter further back, and read on: so one
layer looks at the letter before each letter, and the next at the letter that
stood behind the same letter before (Olsson et al. 2022, arXiv:2209.11895,
call this an induction head).
"""

from pathlib import Path

from d2l_attention.heatmaps import (
    AttentionMaps,
    get_attention_weights,
    plot_attention_grid,
    view_attention,
)
import keras
from keras import layers, ops
import numpy as np

FOLDER = Path(__file__).parent
LETTERS, LENGTH, DIM = "abcdefghijklmnopqrstuvwxyz", 14, 64
TEXT = ("heatmp" * 3)[:LENGTH]
SHOWN = {
    "query_tokens": TEXT,
    "key_tokens": TEXT,
    "mask": np.tri(LENGTH, dtype=bool),
}


def continuer():
    ids = keras.Input((LENGTH,), dtype="int32")
    places = ops.arange(LENGTH, dtype="int32")[None]
    x = layers.Embedding(len(LETTERS), DIM)(ids)
    x = x + layers.Embedding(LENGTH, DIM)(places)
    for i in range(2):
        attend = layers.MultiHeadAttention(2, DIM // 2, name=f"layer_{i}")
        x = x + attend(x, x, use_causal_mask=True)
        x = layers.LayerNormalization()(x)
    return keras.Model(ids, layers.Dense(len(LETTERS))(x))


def draw_strings(number, rng):
    """Strings of different letters that repeat after 4 to 7 of them."""
    letters = rng.permuted(np.tile(np.arange(26), (number, 1)), axis=1)
    periods = rng.integers(4, 8, (number, 1))
    return np.take_along_axis(letters, np.arange(LENGTH + 1) % periods, axis=1)


def view():
    """The book's page: what the model attended to when it was last trained."""
    maps = AttentionMaps.load(FOLDER / "grid.npz")
    return view_attention(maps, **SHOWN, layer="layer_1", head=0)


if __name__ == "__main__":
    keras.utils.set_random_seed(0)
    model = continuer()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(2e-3), loss)
    strings = draw_strings(40_000, np.random.default_rng(0))
    model.fit(strings[:, :-1], strings[:, 1:], 128, 8, verbose=2)

    inputs = np.array([[LETTERS.index(letter) for letter in TEXT]])
    outputs, maps = get_attention_weights(model, inputs)
    print("writes", *(LETTERS[i] for i in np.argmax(outputs[0], -1)))
    figure = plot_attention_grid(maps, **SHOWN)
    figure.savefig(FOLDER / "grid.png", dpi=100)
    maps.save(FOLDER / "grid.npz")
