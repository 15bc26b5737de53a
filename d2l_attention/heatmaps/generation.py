"""The steps of a generation, joined to one map for each layer.

A model that generates calls each attention layer once a token: first on the
prompt, then on one query at a time, whose keys are those of a cache. Nobody
looks for the 37th token in the 37th map, so the rows are put in their places.
Cells that did not exist when their token was written are NaN.
"""

import numpy as np

_MOST_CALLS = 12  # of one layer in a step


def join_steps(calls, before, num_samples, is_decoder, steady):
    """The maps of a run; those of one layer's steps are one map.

    Args:
        calls: Dict of path to the weights `(B, H, T, S)` of its calls.
        before: Dict of path to how many of its calls came before any step.
        num_samples: Int, how many inputs there were, if that is known.
        is_decoder: Whether a model with `start` and `step` took steps.
        steady: Set of the paths that had the same keys in each call of a run
            that is said to generate.

    Returns:
        Dict of path to a list of maps: one for each call of the layer in a
        step, or all calls as they are.
    """
    joined, steps = {}, []
    for path, maps in calls.items():
        if num_samples not in (None, len(maps[0])):
            continue  # beams, say, which change their order at each step
        for number in _numbers_of_calls(maps):
            each = [maps[i::number] for i in range(number)]
            places = [_places(some, is_decoder) for some in each]
            if None not in places:
                joined[path] = list(map(_put, each, places))
                steps += places[:1]
                break
    for path, maps in calls.items():
        if num_samples not in (None, len(maps[0])) or path in joined:
            continue
        is_steady = is_decoder or path in steady
        if (steps or is_steady) and len(maps) > 1:
            maps = maps[before.get(path, 0) :] if is_steady else maps
            joined[path] = _joined_to(maps, steps, is_steady)
    return {path: joined.get(path) or maps for path, maps in calls.items()}


def _numbers_of_calls(maps):
    """How many calls in a step there may be; a layer may be shared."""
    most = min(_MOST_CALLS, len(maps) // 2)
    return [n for n in range(1, most + 1) if len(maps) % n == 0]


def _places(maps, is_decoder):
    """Where the rows of each call belong, `(B, T)`; None if not in one map.

    A query of causal self-attention stands where the last key is that it
    sees. Its row is taken once: a token of padding sees no further key.
    """
    first, *others = maps
    places = [_last_seen(first)]
    if first.shape[2] > 1 and not _is_causal(places[0]):
        return None
    for weights, before in zip(others, maps, strict=False):
        if weights.shape[:2] != first.shape[:2]:
            return None
        rows, keys = weights.shape[2:]
        last, end = _last_seen(weights), places[-1][:, -1:] + 1
        if rows == 1:
            if (last != end).any():
                # A prompt may have been read with padding, or its last token
                # is read twice.
                if len(places) > 1 or first.shape[2] == 1 or (last > end).any():
                    return None
                if not (is_decoder or _are_among(weights, first, last)):
                    return None
        elif rows == keys > before.shape[3]:  # all of it is read again
            if before.shape[2] != before.shape[3] or not _is_causal(last):
                return None
            old = before.shape[2]
            if not _is_close(weights[:, :, :old, :old], before):
                return None
        elif (last - last[:, :1] != np.arange(rows)).any() or (
            last[:, :1] != end
        ).any():
            return None
        places.append(last)
    return places


def _last_seen(weights):
    """The place of the last key that each query sees, `(B, T)`."""
    is_seen = (weights > 0).any(1)
    return weights.shape[3] - 1 - is_seen[..., ::-1].argmax(-1)


def _is_causal(last):
    """Whether each row sees one key more, up to those of padding."""
    rows = np.arange(last.shape[1])
    return bool((last == np.minimum(rows, last[:, -1:])).all())


def _are_among(weights, first, last):
    """Whether rows that are read twice are what they were."""
    again = [head[:, row] for head, [row] in zip(first, last, strict=True)]
    size = min(weights.shape[3], first.shape[3])
    return _is_close(weights[:, :, 0, :size], np.stack(again)[..., :size])


def _is_close(a, b):
    return np.allclose(a.astype("float32"), b, rtol=1e-2, atol=1e-4)


def _put(maps, places, keys=None):
    """All rows in one map `(B, H, T, S)`, NaN where there was nothing.

    Without `keys`, the keys are what is written, one for each row.
    """
    first = maps[0]
    ends = places[-1][:, -1] + 1  # what comes after them is padding
    size = int(ends.max())
    shape = *first.shape[:2], size, keys or size
    joined = np.full(shape, np.nan, np.result_type(first, "float32"))
    for weights, place in zip(maps, places, strict=True):
        for b, t in np.ndindex(place.shape):
            row = place[b, t]
            if row >= ends[b] or (t and row == place[b, t - 1]):
                continue
            seen = min(keys or row + 1, weights.shape[3])
            joined[b, :, row, :seen] = weights[b, :, t, :seen]
    return joined


def _joined_to(maps, steps, is_steady):
    """The maps whose keys are not what is written, but a source, say."""
    if all(w.shape == maps[0].shape and _is_close(w, maps[0]) for w in maps):
        if maps[0].shape[2] > 1:
            return maps[:1]  # a source that is read again at each step
    if len({(*w.shape[:2], w.shape[3]) for w in maps}) > 1:
        return None
    for places in steps:
        number, rest = divmod(len(maps), len(places))
        each = [maps[i::number] for i in range(number)]
        if not rest and all(_have_rows(some, places) for some in each):
            return [_put(some, places, maps[0].shape[3]) for some in each]
    if is_steady and {w.shape[2] for w in maps} == {1}:
        return [np.concatenate(maps, axis=2)]
    return None


def _have_rows(maps, places):
    return [(len(w), w.shape[2]) for w in maps] == [p.shape for p in places]
