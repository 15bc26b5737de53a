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
    weights,
    query_tokens,
    key_tokens,
    tokens,
    layers,
    heads,
    sample,
    mask,
    window,
):
    """The maps that a function for several maps shows, from its arguments.

    A path has `(matrices, query tokens, key tokens)`; the matrices are a masked
    array `(H, T, S)`. The path of an array is `""`.
    """
    if not hasattr(weights, "items"):
        weights = {"": weights}
    if tokens is not None and not isinstance(tokens, dict):
        raise TypeError(
            "`tokens` must be a dict of layer path to a pair of lists; lists "
            "for all layers are `query_tokens` and `key_tokens`. Received: "
            f"{type(tokens).__name__}."
        )
    num_samples = getattr(weights, "num_samples", None)
    windowed = {p for p, w in weights.items() if _has_windows(w, num_samples)}
    if window is not None and not windowed:
        raise ValueError(f"No layer has windows. Received: {window=}.")
    tokens = by_path("tokens", tokens, weights)
    masks = by_path("mask", mask, weights)
    maps = {}
    for path in select_layers(weights, layers):
        of = f"weights of {path!r}" if path else "weights"
        four_axes = np.asarray(weights[path], dtype="float64")
        place = sample
        if four_axes.ndim != 4:
            four_axes, place = to_numpy(four_axes, of, 3)[None], 0
        elif path in windowed:
            _check_window(four_axes, window, num_samples, of)
            place = window
        chosen = _choose(four_axes, place, heads, of)
        pair = tokens[path] or (query_tokens, key_tokens)
        matrices = np.ma.masked_invalid(_cut(four_axes[chosen], *pair, path))
        if masks[path] is not None:
            shapes = four_axes.shape, matrices.shape
            allowed = _as_four_axes(masks[path], *shapes, of)[chosen]
            matrices = np.ma.masked_where(~allowed, matrices)
        maps[path] = (matrices, *pair)
    return maps


def by_path(name, given, weights):
    """What is given for each path: one thing for all, or a dict by path.

    Args:
        name: Str, the argument's, for an error.
        given: A dict of path or pattern; or what holds for all.
        weights: Mapping of path to weights.

    Returns:
        Dict of path, None where nothing is given.

    Raises:
        ValueError: If a path or a pattern of the dict fits none of the maps.
    """
    if not isinstance(given, dict):
        return dict.fromkeys(weights, given)
    fitting = {
        path: [key for key in given if _names(key, path)] for path in weights
    }
    unknown = given.keys() - {key for keys in fitting.values() for key in keys}
    if unknown:
        unknown = [key for key in given if key in unknown]
        raise ValueError(
            f"`{name}` names {unknown}, but the maps are {list(weights)}."
        )
    for path, keys in fitting.items():  # a name goes before a pattern
        keys.sort(key=lambda key: (key != path, key != _first_call(path)))
    return {
        path: given[keys[0]] if keys else None for path, keys in fitting.items()
    }


def _names(key, path):
    """Whether a path or a pattern names a layer, or its first call."""
    calls = path, _first_call(path)
    return key in calls or bool(fnmatch.filter(calls, key))


def _first_call(path):
    """The path of a layer's first call, whose tokens all its calls have."""
    return path.split("#")[0]


def matrices_of(maps):
    """Dict of path to the masked array `(H, T, S)` of maps that are shown."""
    return {path: matrices for path, (matrices, _, _) in maps.items()}


def to_numpy(array, name, num_axes):
    """A float64 array; refuse an empty one or another number of axes."""
    if hasattr(array, "items"):
        raise TypeError(
            f"`{name}` must be one array. Choose one of a mapping by its path, "
            "or draw all by `plot_attention_grid`. Received: a mapping of "
            f"{list(array)}."
        )
    array = np.asarray(array, dtype="float64")
    if array.ndim != num_axes or not array.size:
        raise ValueError(
            f"`{name}` must have {num_axes} axes and not be empty. Received: "
            f"shape {array.shape}."
        )
    return array


def hide(weights, mask):
    """A masked array that hides NaN and the cells that `mask` forbids."""
    if mask is not None:
        mask = np.broadcast_to(np.asarray(mask, bool), weights.shape)
        weights = np.ma.masked_where(~mask, weights)
    return np.ma.masked_invalid(weights)


def _has_windows(weights, num_samples):
    """Whether a layer's batch is not that of the model."""
    return np.ndim(weights) == 4 and len(weights) != (
        num_samples or len(weights)
    )


def _check_window(weights, window, num_samples, of):
    if window is None or not 0 <= window < len(weights):
        raise ValueError(
            f"The {of} are {len(weights)} for {num_samples} inputs of the "
            "model, since the layer cuts them into windows, or runs on them "
            f"more than once. Choose one by `window`, 0 to {len(weights) - 1}. "
            f"Received: {window}."
        )


def _choose(weights, sample, heads, of):
    """The index of one sentence and its heads, if they are there."""
    num_samples, num_heads = weights.shape[:2]
    if not -num_samples <= sample < num_samples:
        raise ValueError(
            f"`sample` must be one of the {num_samples} sentences of the {of}, "
            f"of shape {weights.shape}. Received: {sample}."
        )
    heads = [*(range(num_heads) if heads is None else heads)]
    wrong = [head for head in heads if not -num_heads <= head < num_heads]
    if wrong:
        raise ValueError(
            f"`heads` must be among 0 to {num_heads - 1}, the heads of the "
            f"{of}. Received: {wrong}."
        )
    return sample, heads


def _as_four_axes(mask, shape, shown, of):
    """A mask `(T, S)`, `(B, T, S)` or `(B, H, T, S)` as `(B, H, T, S)`.

    As in the layers' contract, three axes are those of a batch, never heads.
    T and S are those of all weights, or of the part that is shown.
    """
    found = np.asarray(mask, bool)
    mask = found[:, None] if found.ndim == 3 else found
    part = shape[:2] + shown[1:]
    for size in (shape, part):
        try:
            return np.broadcast_to(mask, size)[..., : part[2], : part[3]]
        except ValueError:
            pass
    b, h, t, s = shape
    raise ValueError(
        f"The mask of the {of} must fit (T, S), (B, T, S) or (B, H, T, S), "
        f"here {(t, s)}, {(b, t, s)} or {shape}. Received: shape {found.shape}."
    )


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
