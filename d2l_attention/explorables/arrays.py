"""The reader's arrays, as numbers that a page can hold."""

import numpy as np

_AXES = {1: "one axis", 2: "two axes"}


def finite(name, array, num_axes=1):
    """The array in float64, with so many axes and finite numbers only."""
    array = np.asarray(array, "float64")
    if array.ndim != num_axes or not array.size or not np.isfinite(array).all():
        raise ValueError(
            f"`{name}` must be {_AXES[num_axes]} of finite numbers. Received: "
            f"{name} of shape {array.shape}, {array}."
        )
    return array


def nearest(places, number):
    """The index of the place that is nearest to a number."""
    return int(np.abs(np.asarray(places) - number).argmin())
