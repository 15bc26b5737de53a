"""Argument checks that many modules share."""

from numbers import Integral

import keras
import numpy as np


def as_array(x, dtype=None):
    """A NumPy array, also of a tensor of any dtype, with a gradient or none."""
    if keras.ops.is_tensor(x):
        x = keras.ops.convert_to_numpy(x)
    x = np.asarray(x, dtype)
    # To NumPy, bfloat16 is no float.
    return x.astype("float32") if x.dtype.name == "bfloat16" else x


def refuse(wrong, x, message):
    """x, where nothing is wrong; else an error, or in a graph NaN.

    Args:
        wrong: Bool tensor of the first axes of `x`.
        x: Float tensor.
        message: Function that says what was received and what to do.

    Raises:
        ValueError: If anything is wrong, and the values are known. A graph
            knows no values while it is made.
    """
    try:
        found = bool(keras.ops.convert_to_numpy(wrong).any())
    except Exception:  # each backend has an error of its own for a graph
        axes = tuple(range(len(wrong.shape), len(x.shape)))
        return keras.ops.where(
            keras.ops.expand_dims(wrong, axes), float("nan"), x
        )
    if found:
        raise ValueError(message())
    return x


def check_room(model, num_tokens):
    """Refuse more tokens than a model has positions."""
    most = getattr(model, "max_length", None)
    if None not in (most, num_tokens) and num_tokens > most:
        raise ValueError(
            "The model has too few positions. Received: "
            f"{num_tokens} tokens for {most} positions."
        )


def check_dict(inputs, *names):
    """Refuse model inputs other than a dict with these tensors."""
    if not isinstance(inputs, dict) or not {*names} <= {*inputs}:
        received = sorted(inputs) if isinstance(inputs, dict) else type(inputs)
        raise ValueError(
            f"The model takes a dict of {' and '.join(map(repr, names))}. "
            f"Received: {received}."
        )


def check_rate(name, value):
    """The rate as a float; refuse one outside [0, 1)."""
    if not 0.0 <= value < 1.0:
        raise ValueError(
            f"`{name}` must be in [0, 1). Received: {name}={value}."
        )
    return float(value)


_REQUIRED = object()


def check_positive(name, value, default=_REQUIRED):
    """The size as an int; refuse anything but a positive integer.

    With a default, None is allowed and gives the default.
    """
    if value is None and default is not _REQUIRED:
        return default
    is_integer = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_integer or value < 1:
        raise ValueError(
            f"`{name}` must be a positive integer. Received: {name}={value!r}."
        )
    return int(value)  # of NumPy's integers too, which JSON does not know


def differ(a, b):
    """Whether two sizes are known and unequal."""
    return isinstance(a, int) and isinstance(b, int) and a != b


def check_boolean(name, mask):
    """Refuse a mask of another dtype."""
    mask = mask if hasattr(mask, "dtype") else np.asarray(mask)
    if keras.backend.standardize_dtype(mask.dtype) != "bool":
        raise ValueError(
            f"{name} must be boolean, True = may attend. Received: dtype "
            f"{mask.dtype}. Cast a mask of 1 and 0 to bool; of an additive "
            "mask of 0 and -inf, take `mask == 0`."
        )


def check_token_mask(name, mask, shape):
    """Refuse a mask that is not one boolean for each token: `(B, T)`.

    Any other shape could broadcast to the scores and mask something else. One
    row may hold for the whole batch. Nothing is computed, so a mask may be
    symbolic, and B and T unknown, None.
    """
    check_boolean(name, mask)
    expected, received = tuple(shape), tuple(np.shape(mask))
    fits = len(received) == len(expected) and all(
        None in (m, s) or m == s or (m == 1 and axis < len(expected) - 1)
        for axis, (m, s) in enumerate(zip(received, expected, strict=True))
    )
    if not fits:
        raise ValueError(
            f"{name} must have a boolean for each token, so the shape "
            f"{expected}. Received: shape {received}."
        )


def check_tensor(name, tensor, by_position):
    """Refuse a list of tensors, and a mask in the place of numbers."""
    is_list = isinstance(tensor, (list, tuple))
    if is_list or (name == "query" and tensor is None):
        kind = type(tensor).__name__
        received = f"a {kind} of {len(tensor)}" if is_list else None
        raise ValueError(
            f"{name} must be one tensor: write layer({', '.join(by_position)})"
            f". Received: {received}."
        )
    dtype = getattr(tensor, "dtype", None)
    if dtype is not None and keras.backend.standardize_dtype(dtype) == "bool":
        raise ValueError(
            f"{name} must have numbers. A mask of pairs goes by its name, "
            "attention_mask=mask, and a mask of tokens as key_mask=mask. "
            f"Received: a boolean tensor of shape {tuple(tensor.shape)}."
        )


# Each mask of tokens, and whose tokens they are: the first that is given.
_TOKENS_OF = {
    "query_mask": ("query",),
    "mask": ("query", "x"),
    "context_mask": ("query",),
    "key_mask": ("key", "value", "query"),
    "value_mask": ("value", "key", "query"),
}


def check_masks(given):
    """Refuse a mask that would broadcast to other tokens, or to none."""
    for name, owners in _TOKENS_OF.items():
        if name in given:
            tokens = next(given[x] for x in owners if x in given)
            check_token_mask(name, given[name], np.shape(tokens)[:2])
    for name in {"attention_mask", "cross_attention_mask"} & given.keys():
        if len(np.shape(given[name])) < 2:
            raise ValueError(
                f"{name} must say which pairs may attend: (T, S) or more axes."
                f" Received: shape {tuple(np.shape(given[name]))}."
            )
