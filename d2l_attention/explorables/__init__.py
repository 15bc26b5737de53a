"""Explorables: predict, move something, and watch a mechanism answer.

Each is a page that works offline, alone or in a notebook, by mouse, touch,
keyboard and screen reader, with arrays of your own.
"""

from d2l_attention.explorables.flash_attention import explore_flash_attention
from d2l_attention.explorables.kernel_regression import (
    explore_kernel_regression,
)
from d2l_attention.explorables.masked_softmax import explore_masked_softmax
from d2l_attention.explorables.page import Explorable

__all__ = [
    "Explorable",
    "explore_flash_attention",
    "explore_kernel_regression",
    "explore_masked_softmax",
]
