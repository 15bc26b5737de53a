"""Tiny inputs of keras-hub's models, and softmaxes recorded beside them."""

import sys

import keras
from keras import ops
import numpy as np
import pytest

MARKS = [
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


def softmaxes_of(run, fused=None):
    """Outputs of `run()`, and what each softmax of Keras in it gave.

    Softmaxes of fewer than three axes, of probabilities, are left out.

    Args:
        run: A function without arguments.
        fused: What to record of Keras's fused attention, a function of its
            arguments; nothing by default.

    Returns:
        The outputs, and a list of arrays in the order of the calls.
    """
    nn, found = sys.modules["keras.src.backend"].nn, []
    softmax, attend = nn.softmax, nn.dot_product_attention

    def heard_softmax(x, axis=-1):
        weights = softmax(x, axis=axis)
        if len(weights.shape) > 2:
            found.append(ops.convert_to_numpy(weights))
        return weights

    def heard_attend(query, key, value, **options):
        if fused is not None:
            found.append(fused(query, key, **options))
        return attend(query, key, value, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nn, "softmax", heard_softmax)
        patch.setattr(nn, "dot_product_attention", heard_attend)
        return run(), found
