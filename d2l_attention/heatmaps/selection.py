"""The weights to show: which layers, heads, sentence and tokens."""

from dataclasses import dataclass
import fnmatch
from numbers import Integral
from typing import NamedTuple
import warnings

from d2l_attention._checks import as_array
import numpy as np

UNREAD = " The last token of a generation was never read: leave it out."


def is_signed(array):
    """Whether there are negative entries that are more than rounding."""
    # fmin passes over NaN, and copies nothing of a large map.
    if np.fmin.reduce(np.ma.getdata(array), axis=None, initial=0.0) >= 0:
        return False
    array = np.ma.filled(array, 0.0)
    low = np.fmin.reduce(array, axis=None, initial=0.0)
    high = np.fmax.reduce(array, axis=None, initial=0.0)
    return bool(low < -0.01 * max(-low, high))


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
            "There is no layer with attention called "
            f"{missing or layers!r}. There are: {paths}."
        )
    return chosen


def fits(path, layers=None):
    """Whether `layers` names or matches a path, or leaves all in."""
    if layers is None or isinstance(layers, str):
        return fnmatch.fnmatch(path, layers or "*")
    return path in layers


class ShownMap(NamedTuple):
    """The maps of one layer that are shown, and what is said of them."""

    weights: np.ma.MaskedArray  # (H, T, S); masked where nothing may attend
    query_tokens: list | None
    key_tokens: list | None
    hidden: list  # places of the keys whose columns are grey

    def visible(self, head=slice(None)):
        """The weights of all heads, or of one, without those of hidden keys."""
        return without_keys(self.weights[head], self.hidden)


@dataclass(frozen=True)
class Selection:
    """What a function for several maps shows; `plot_attention_grid` has more.

    `of(weights)` is a dict of layer path to `ShownMap`; the path of an array
    is `""`.
    """

    query_tokens: list | None = None
    key_tokens: list | None = None
    tokens: dict | None = None
    layers: list | str | None = None
    heads: list | None = None
    sample: int = 0
    window: int | None = None
    mask: object = None
    hide_keys: object = ()

    def of(self, weights):
        if isinstance(weights, tuple) and hasattr(weights[-1], "items"):
            raise TypeError(
                "`weights` must be maps. `get_attention_weights` returns a "
                "pair of outputs and maps: give the second of the pair. "
                "Received: a tuple."
            )
        if not hasattr(weights, "items"):
            weights = {"": weights}
        if self.tokens is not None and not isinstance(self.tokens, dict):
            raise TypeError(
                "`tokens` must be a dict of layer path to a pair of lists; "
                "lists for all layers are `query_tokens` and `key_tokens`. "
                f"Received: {type(self.tokens).__name__}."
            )
        samples = getattr(weights, "num_samples", None)
        windowed = {p for p, w in weights.items() if _has_windows(w, samples)}
        if self.window is not None and not windowed:
            raise ValueError(
                f"No layer has windows. Received: window={self.window}."
            )
        tokens = by_path("tokens", self.tokens, weights)
        masks = by_path("mask", self.mask, weights)
        maps = {}
        for path in select_layers(weights, self.layers):
            of = _of(path)
            four_axes, place = as_floats(weights[path]), self.sample
            if four_axes.ndim != 4:
                four_axes, place = to_numpy(four_axes, of, 3)[None], 0
            elif path in windowed:
                _check_window(four_axes, self.window, samples, of)
                place = self.window
            chosen = _choose(four_axes, place, self.heads, of)
            pair = tokens[path] or (self.query_tokens, self.key_tokens)
            matrices = _cut(four_axes[chosen], *pair, path)
            matrices = hide(matrices, None, of)
            if masks[path] is not None:
                shapes = four_axes.shape, matrices.shape
                allowed = _as_four_axes(masks[path], *shapes, of)[chosen]
                matrices = np.ma.masked_where(~allowed, matrices, copy=False)
            maps[path] = matrices, *pair
        hidden = by_path("hide_keys", self.hide_keys, maps)
        return {
            path: ShownMap(
                *shown,
                choose_keys(
                    () if hidden[path] is None else hidden[path],
                    shown[0].shape[-1],
                    _of(path),
                ),
            )
            for path, shown in maps.items()
        }


def _of(path):
    return f"weights of {path!r}" if path else "weights"


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
    return path.split("#")[0].split(", softmax ")[0]


def check_mapping(maps):
    """Refuse what is no mapping of paths."""
    if not hasattr(maps, "items"):
        raise TypeError(
            "`maps` must be a mapping of layer path to weights, as "
            f"`get_attention_weights` gives. Received: {type(maps).__name__}."
        )


def choose_keys(hide_keys, size, of):
    """The places of some of `size` keys, in order, if they are there."""
    keys = [*hide_keys] if np.iterable(hide_keys) else [None]
    for key in keys:
        if not (isinstance(key, Integral) and 0 <= key < size):
            raise ValueError(
                "`hide_keys` must be a list of places of keys; there are 0 to "
                f"{size - 1} in the {of}. Received: {hide_keys!r}."
            )
    return sorted({int(key) for key in keys})


def without_keys(weights, keys):
    """The weights `(…, T, S)` with the columns of some keys masked."""
    if not keys:
        return weights
    columns = np.isin(np.arange(weights.shape[-1]), keys)
    mask = np.ma.getmaskarray(weights) | columns
    return np.ma.array(weights.data, mask=mask)


def share_of_keys(weights, keys):
    """How much of all weight, in absolute values, lies on some keys."""
    sizes = np.ma.filled(np.ma.abs(weights), 0)
    whole = sizes.sum(dtype="float64")
    part = sizes[..., keys].sum(dtype="float64")
    return float(part / whole) if whole else 0.0


def to_numpy(array, name, num_axes):
    """An array of floats; refuse an empty one or another number of axes."""
    if hasattr(array, "items"):
        raise TypeError(
            f"`{name}` must be one array. Choose one of a mapping by its path, "
            "or draw all by `plot_attention_grid`. Received: a mapping of "
            f"{list(array)}."
        )
    array = as_floats(array)
    if array.ndim != num_axes or not array.size:
        subject = f"`{name}`" if name.isidentifier() else f"The {name}"
        advice = " Choose one map, such as `maps[path][0, 0]`."
        raise ValueError(
            f"{subject} must have {num_axes} axes and not be empty. Received: "
            f"shape {array.shape}."
            + (advice if num_axes == 2 and array.ndim in (3, 4) else "")
        )
    return array


def hide(weights, mask, of="weights"):
    """A masked array that hides NaN, −∞ and the cells that `mask` forbids."""
    if np.isposinf(weights).any():  # the others have a look, but not this
        raise ValueError(f"The {of} must be finite. Received: infinity.")
    if mask is not None:
        mask = np.broadcast_to(as_array(mask, bool), weights.shape)
        weights = np.ma.masked_where(~mask, weights, copy=False)
    return np.ma.masked_invalid(weights, copy=False)


def as_floats(weights):
    """An array of floats of 32 bits or more; not a copy, if it is one."""
    weights = as_array(weights)
    return weights.astype(np.result_type(weights, "float32"), copy=False)


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
    if heads is None:
        return sample, slice(None)  # which copies nothing
    heads = list(heads)
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
    found = as_array(mask, bool)
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
            + (UNREAD if t <= rows + 1 and s <= columns + 1 else "")
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
