"""The weights to show: which layers, heads, sentence and tokens."""

import fnmatch
import warnings

import numpy as np


def select_layers(paths, layers=None):
    """The paths that a list names or a pattern with `*` matches; None = all."""
    paths = list(paths)
    if layers is None:
        return paths
    if isinstance(layers, str):
        chosen, missing = fnmatch.filter(paths, layers), []
    else:
        chosen = [path for path in layers if path in paths]
        missing = [path for path in layers if path not in paths]
    if missing or not chosen:
        raise ValueError(
            f"There is no layer {missing or layers!r}. There are: {paths}."
        )
    return chosen


def fits(path, layers=None):
    """Whether `layers` names or matches a path, or leaves all in."""
    if layers is None or isinstance(layers, str):
        return fnmatch.fnmatch(path, layers or "*")
    return path in layers


def select_maps(
    weights, query_tokens, key_tokens, tokens, layers, heads, sample
):
    """The maps that a function for several maps shows, from its arguments.

    A path has `(matrices (H, T, S), query tokens, key tokens)`. The path of an
    array is `""`.
    """
    if not hasattr(weights, "items"):
        weights = {"": weights}
    tokens = {} if tokens is None else tokens
    maps = {}
    for path in select_layers(weights, layers):
        matrices = _heads_of(weights[path], path, sample, heads)
        pair = tokens.get(path, (query_tokens, key_tokens))
        maps[path] = (_cut(matrices, *pair, path), *pair)
    return maps


def to_numpy(array, name, num_axes):
    """A float64 array; refuse an empty one or another number of axes."""
    array = np.asarray(array, dtype="float64")
    if array.ndim != num_axes or not array.size:
        raise ValueError(
            f"`{name}` must have {num_axes} axes and not be empty. Received: "
            f"shape {array.shape}."
        )
    return array


def hide(weights, mask, path=""):
    """A masked array that hides NaN and the cells that `mask` forbids."""
    if isinstance(mask, dict):
        mask = mask.get(path)
    if mask is not None:
        mask = np.broadcast_to(np.asarray(mask, bool), weights.shape)
        weights = np.ma.masked_where(~mask, weights)
    return np.ma.masked_invalid(weights)


def _heads_of(weights, path, sample, heads):
    """The chosen heads of one sentence, `(H, T, S)`."""
    weights = np.asarray(weights, dtype="float64")
    if weights.ndim == 4:
        weights = weights[sample]
    weights = to_numpy(weights, f"weights of {path}" if path else "weights", 3)
    return weights if heads is None else weights[list(heads)]


def _cut(matrices, query_tokens, key_tokens, path):
    """The matrices up to the last token; a warning if weight is lost."""
    _, rows, columns = matrices.shape
    t = rows if query_tokens is None else len(query_tokens)
    s = columns if key_tokens is None else len(key_tokens)
    if t > rows or s > columns:
        raise ValueError(
            f"{t} query and {s} key tokens do not fit weights {path} of shape "
            f"{(rows, columns)}."
        )
    lost = np.nan_to_num(matrices[:, :t, s:]).sum(-1).max(initial=0.0)
    if lost > 1e-3:
        warnings.warn(
            f"Up to {lost:.0%} of a row's attention lies on the {columns - s} "
            f"columns after the {s} key tokens; these columns are left out"
            + (f" ({path})." if path else "."),
            stacklevel=4,
        )
    return matrices[:, :t, :s]
