"""Each explorable with arrays of a test's own."""

from d2l_attention.explorables import (
    explore_flash_attention,
    explore_kernel_regression,
    explore_masked_softmax,
)
import numpy as np


def kernel_regression(**asked):
    rng = np.random.default_rng(1)
    key = np.sort(rng.uniform(0, 5, 30))
    value = np.sin(key) + rng.normal(0, 0.3, 30)
    query = np.arange(0, 5, 0.25)
    asked = {"truth": np.sin, "width": 1.0, **asked}
    return explore_kernel_regression(key, value, query, **asked)


def flash_attention(**asked):
    scores = np.log([1.0, 2, 4, 1])
    value = np.array([[8.0, 0], [4, 4], [2, 2], [16, 8]])
    return explore_flash_attention(scores, value, **asked)


def masked_softmax(mask=None, **asked):
    scores = np.array([[3, 1, 0, 0], [2, 1, 3, 0], [1, 3, 1, 0], [0, 0, 0, 0]])
    words = ["the", "cow", "sleeps", "."]
    tokens = {"query_tokens": words, "key_tokens": words}
    return explore_masked_softmax(scores, mask, **{**tokens, **asked})


PAGES = {
    "kernel_regression": kernel_regression,
    "flash_attention": flash_attention,
    "masked_softmax": masked_softmax,
}
