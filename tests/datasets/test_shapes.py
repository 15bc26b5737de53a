"""Pictures of shapes show what their captions say, where it is said."""

from d2l_attention.datasets import draw_shapes
import numpy as np
import pytest


def test_a_seed_draws_the_same_pictures_and_another_one_others():
    first, again, other = (
        draw_shapes(5, 3),
        draw_shapes(5, 3),
        draw_shapes(5, 4),
    )
    np.testing.assert_array_equal(first.images, again.images)
    assert first.captions == again.captions
    assert np.abs(first.images - other.images).max() > 0.1
    assert first.images.dtype == "float32"
    assert first.images.min() >= 0 and first.images.max() <= 1


def number_of_areas(covered):
    """How many areas of neighbouring pixels there are."""
    left, areas = {tuple(x) for x in np.argwhere(covered)}, 0
    while left:
        areas, border = areas + 1, [left.pop()]
        while border:
            r, c = border.pop()
            near = {(r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)} & left
            left -= near
            border += near
    return areas


def test_captions_count_the_areas_and_name_their_colour_and_kind():
    drawn = draw_shapes(100, seed=1, size=32, noise=0)
    pixels = {"circle": set(), "square": set(), "triangle": set()}
    for i, caption in enumerate(drawn.captions):
        number, colour, kind = caption.split()
        count = ("one", "two", "three").index(number) + 1
        assert kind.endswith("s") == (count > 1)
        covered, image = drawn.covered[i], drawn.images[i]
        assert count == drawn.counts[i] == number_of_areas(covered)
        red, green, blue = image[covered].mean(0)
        found = {
            "red": red > 2 * max(green, blue),
            "green": green > 2 * max(red, blue),
            "blue": blue > 2 * max(red, green),
            "yellow": min(red, green) > 2 * blue,
        }
        assert [x for x in found if found[x]] == [colour]
        assert np.ptp(image[~covered]) == 0  # the ground has one grey
        pixels[kind.removesuffix("s")].add(covered.sum() / count)
    assert all(len(x) == 1 for x in pixels.values())  # equal shapes
    assert len({*drawn.captions}) == 36 or len({*drawn.captions}) > 25


def test_a_shape_lies_on_four_patches():
    drawn = draw_shapes(50, seed=2)
    on = drawn.covered.reshape(50, 6, 4, 6, 4).any(axis=(2, 4))
    np.testing.assert_array_equal(on.sum(axis=(1, 2)), 4 * drawn.counts)


@pytest.mark.parametrize("size", [16, 26, 24.0, "24"])
def test_a_size_without_room_or_without_cells_is_refused(size):
    with pytest.raises(ValueError, match=f"multiple of 8.*size={size!r}"):
        draw_shapes(2, size=size)


@pytest.mark.parametrize("noise", [-1, float("nan"), float("inf"), "0.1"])
def test_noise_is_a_finite_number_of_at_least_0(noise):
    with pytest.raises(ValueError, match=f"at least 0.*noise={noise!r}"):
        draw_shapes(2, noise=noise)
