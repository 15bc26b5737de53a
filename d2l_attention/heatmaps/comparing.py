"""Whether what a layer gives is the same again, up to rounding."""

from keras import ops, tree
import numpy as np


def is_close(a, b):
    return not differs(a, b).any()


def differs(a, b, share=1e-3, axis=None):
    """Where arrays differ by a share of the largest number along axes."""
    kind = np.result_type(a.dtype, b.dtype, "float32")
    a, b = a.astype(kind), b.astype(kind)
    largest = np.abs(a).max(axis, keepdims=True, initial=1e-12)
    return ~(np.abs(a - b) <= share * largest)


def float_arrays(output):
    """The arrays of floats that a layer gave."""
    arrays = [_numpy(x) for x in tree.flatten(output)]
    return [
        np.nan_to_num(x.astype("float64"))
        for x in arrays
        if x is not None and x.dtype != bool
    ]


def _numpy(x):
    """An array of one or more axes, or None."""
    if not len(getattr(x, "shape", ())):
        return None
    return np.array(ops.convert_to_numpy(x))
