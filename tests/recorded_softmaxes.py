"""Tiny inputs of keras-hub's models, and softmaxes recorded beside them."""

import keras
import numpy as np
import pytest

MARKS = [
    pytest.mark.ci,
    pytest.mark.skipif(
        keras.backend.backend() != "tensorflow", reason="tiny ones, once"
    ),
    # other people's layers
    pytest.mark.filterwarnings("ignore::UserWarning:keras"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
IDS = np.array([[1, 5, 3, 0], [2, 4, 6, 7]], "int32")
MASK = IDS > 0
TOKENS = {"token_ids": IDS, "padding_mask": MASK}


def sides(**options):
    """The same of the encoder and of the decoder."""
    return {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in options.items()
    }


PAIRS = sides(**TOKENS)


def softmaxes_of(run):
    """Outputs of `run()`, and what each softmax of TensorFlow in it gave.

    Every softmax of Keras ends there, that of its fused attention too, so
    nothing is known here of Keras's own functions, which the heatmaps watch.
    Softmaxes of fewer than three axes, of probabilities, are left out.

    Returns:
        The outputs, and a list of arrays in the order of the calls.
    """
    import tensorflow as tf

    softmax, given = tf.nn.softmax, []

    def noted_softmax(*args, **kwargs):
        weights = softmax(*args, **kwargs)
        if len(weights.shape) > 2:
            given.append(weights.numpy())
        return weights

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tf.nn, "softmax", noted_softmax)
        return run(), given
