"""The colours of the course: seen on paper, and told apart."""

import itertools

from d2l_attention.heatmaps.palette import GROUPS, PALETTE, contrast
from matplotlib.colors import to_rgb
import numpy as np
import pytest

# Machado, Oliveira and Fernandes (2009), severity 1, for linear RGB.
SIGHT = {
    "common": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def lab(colour, sight):
    """A colour in CIE L*a*b*, where distances are those that an eye sees."""
    rgb = np.array(to_rgb(colour))
    rgb = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = np.array(
        [
            [0.4124564, 0.3575761, 0.1804375],
            [0.2126729, 0.7151522, 0.0721750],
            [0.0193339, 0.1191920, 0.9503041],
        ]
    ) @ np.clip(SIGHT[sight] @ rgb, 0, 1)
    x, y, z = np.cbrt(np.maximum(xyz / [0.95047, 1, 1.08883], 0.008856))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_contrast_is_that_of_the_standard():
    assert contrast("black", "white") == pytest.approx(21)
    assert contrast("#777777", "white") == pytest.approx(4.48, abs=0.005)
    assert contrast("white", "#777777") == contrast("#777777", "white")


@pytest.mark.parametrize("name", PALETTE)
def test_a_colour_stands_out_from_the_paper(name):
    assert contrast(PALETTE[name], "white") >= 3


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("group", GROUPS)
def test_the_colours_of_a_group_are_told_apart(group, sight):
    """A distance of 2.3 in L*a*b* is the least that an eye sees."""
    for first, second in itertools.combinations(GROUPS[group].values(), 2):
        difference = lab(first, sight) - lab(second, sight)
        least = 30 if sight == "common" else 15
        assert np.linalg.norm(difference) > least, (first, second)


def test_a_name_has_one_colour():
    assert len(PALETTE) == sum(map(len, GROUPS.values()))
