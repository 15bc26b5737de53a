"""The README's picture: attention of a model made of `keras.layers`.

    python docs/grid.py

The model learns to write its input backwards; nobody tells it where to look.
"""

from pathlib import Path

from d2l_attention.heatmaps import get_attention_weights, plot_attention_grid
import keras
from keras import layers
import numpy as np

LETTERS, LENGTH, DIM = 26, 8, 64


def reverser():
    ids = keras.Input((LENGTH,), dtype="int32")
    places = keras.ops.arange(LENGTH, dtype="int32")[None]
    x = layers.Embedding(LETTERS, DIM)(ids)
    x = x + layers.Embedding(LENGTH, DIM)(places)
    for i in range(2):
        attended = layers.MultiHeadAttention(3, DIM // 3, name=f"layer_{i}")
        x = layers.LayerNormalization()(x + attended(x, x))
    return keras.Model(ids, layers.Dense(LETTERS)(x))


if __name__ == "__main__":
    keras.utils.set_random_seed(0)
    model = reverser()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(3e-3), loss, metrics=["accuracy"])
    x = np.random.default_rng(0).integers(0, LETTERS, (4096, LENGTH))
    model.fit(x, x[:, ::-1], batch_size=128, epochs=8, verbose=2)

    word = "heatmaps"
    inputs = np.array([[ord(letter) - ord("a") for letter in word]])
    outputs, maps = get_attention_weights(model, inputs)
    written = [chr(ord("a") + i) for i in np.argmax(outputs[0], -1)]
    figure = plot_attention_grid(maps, written, list(word))
    figure.savefig(Path(__file__).parent / "grid.png", dpi=80)
