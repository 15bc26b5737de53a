"""The steps of a generation, joined to one map for each layer.

A model that generates calls each attention layer once a token: first on the
prompt, then on one query at a time, whose keys are those of a cache. Nobody
looks for the 37th token in the 37th map, so the rows are put in their places.
Cells that did not exist when their token was read are NaN.

Rows belong together if their keys do. So each call says whether it goes on
with the keys of a call before (`Link`), and maps whose calls do not are left
as they are: those of beams, of other texts, of a memory that moves on.
"""

from collections import deque
from typing import NamedTuple

from d2l_attention.heatmaps.comparing import differs, is_close
import numpy as np

_MOST_CALLS = 12  # of one layer in a step


class Link(NamedTuple):
    """What a call of a layer has to do with the calls before it."""

    goes_on: int | None  # how many calls ago its first keys were all the keys
    is_same: int | None  # how many calls ago the keys were the same
    changes: dict  # how many calls ago → the first key that is another, `(B,)`


class Links:
    """The links of the calls of one layer, noted as they are made."""

    def __init__(self):
        self._before = deque(maxlen=_MOST_CALLS)
        self.made = []

    def note(self, weights, keys):
        """A call with weights `(B, H, T, S)` and keys `(B, S, …)`."""
        call = weights, keys
        read = keys if weights.shape[2] > 1 else None
        self._add(call, read, _keys_go_on, lambda a, b: _is_close(a[1], b[1]))

    def note_call(self, inputs, outputs):
        """A call whose keys are not known: its tensors of positions."""
        read = inputs[0] if inputs and inputs[0].shape[1] > 1 else None
        self._add((inputs, outputs), read, _call_goes_on, _has_same_sequences)

    def _add(self, call, read, goes_on, is_same):
        before = list(enumerate(reversed(self._before), 1))

        def first(linked):
            lags = (k for k, (other, _) in before if linked(other, call))
            return next(lags, None)

        changes = {k: _first_change(other, read) for k, (_, other) in before}
        self.made.append(Link(first(goes_on), first(is_same), changes))
        self._before.append((call, read))


def _keys_go_on(before, call):
    (some, keys), (others, later) = before, call
    if keys.shape[:1] + keys.shape[2:] != later.shape[:1] + later.shape[2:]:
        return False
    ends = 1 + _last_seen(some)[:, -1]
    if others.shape[2] == 1:  # what comes before the query; not padding
        ends = np.minimum(ends, _last_seen(others)[:, 0])
    size = min(keys.shape[1], later.shape[1])
    if ends.max() > size:
        return False
    seen = np.arange(size) < ends[:, None]  # (B, S)
    return _is_close(keys[:, :size][seen], later[:, :size][seen])


def _call_goes_on(before, call):
    """Whether a cache was handed on, or what was read is read again."""
    inputs, outputs = before
    handed_on = any(
        a.ndim > 3 and a.shape == b.shape and np.array_equal(a, b)
        for a in outputs
        for b in call[0]
    )
    return handed_on or any(
        a.shape[1] < b.shape[1]
        and a.shape[2:] == b.shape[2:]
        and _is_close(a, b[:, : a.shape[1]])
        for a, b in zip(inputs, call[0], strict=False)
    )


def _has_same_sequences(before, call):
    some, others = (
        [x for x in inputs if x.ndim == 3 and x.shape[1] > 1]
        for inputs, _ in (before, call)
    )
    return len(some) == len(others) > 0 and all(map(_is_close, some, others))


def _first_change(a, b):
    """The first position of each sentence that is another; None if unlike."""
    if a is None or b is None or a.shape != b.shape:
        return None
    others = differs(a, b).reshape(*a.shape[:2], -1).any(-1)
    return np.where(others.any(-1), others.argmax(-1), others.shape[1])


def _is_close(a, b):
    return a.shape == b.shape and is_close(a, b)


def join_steps(calls, links, before, num_steps, num_model_calls):
    """The maps of a run that generates; those of one layer's steps are one.

    Args:
        calls: Dict of path to the weights `(B, H, T, S)` of its calls.
        links: Dict of path to the `Link` of each call.
        before: Dict of path to how many of its calls came before any step.
        num_steps: Int, steps of a model with `start` and `step`; 0 if there
            is none.
        num_model_calls: Int, how often the model was called.

    Returns:
        Dict of path to a list of maps: one for each call of the layer in a
        step. Paths whose calls do not belong together are missing.
    """
    joined, places, steps = {}, None, num_steps or num_model_calls
    for path, maps in calls.items():
        if len(maps) != len(links[path]):
            continue
        for number in _numbers_of_calls(maps, before[path], num_steps):
            found = _join_to_itself(maps, links[path], number, num_steps > 0)
            found = found or _join_refilled(maps, links[path], number)
            if found is not None:
                joined[path], places = found
                steps = num_steps or len(maps) // number
                break
    for path, maps in calls.items():
        if path in joined or len(maps) != len(links[path]):
            continue
        found = _join_to_others(maps, links[path], before[path], steps, places)
        if found is not None:
            joined[path] = found
    return joined


def _numbers_of_calls(maps, before, num_steps):
    """How many calls in a step there may be; a layer may be shared."""
    if num_steps:
        number, rest = divmod(len(maps) - before, num_steps)
        fits = number and not rest and before in (0, number)
        return [number] if fits else []
    most = min(_MOST_CALLS, len(maps) // 2)
    return [n for n in range(1, most + 1) if len(maps) % n == 0]


def _join_to_itself(maps, links, number, is_decoder):
    """Maps of self-attention, and where the rows belong; or None."""
    if not _are_linked([link.goes_on for link in links], number):
        return None
    each = [maps[i::number] for i in range(number)]
    places = [_places(some, is_decoder) for some in each]
    if None in places:
        return None
    return list(map(_put, each, places)), places[0]


def _are_linked(lags, number):
    """Whether each call has to do with the one `number` calls before.

    It has, too, if each has to do with the one before, and so on.
    """
    found = set(lags[number:]) or {None}
    lag = found.pop()
    return not (
        lag is None or found or number % lag or {lag} != set(lags[lag:])
    )


def _join_refilled(maps, links, number):
    """The same, of texts padded to one length, which are filled token by token.

    Each call has one token more than the call before, where that had padding.
    What the last call reads up to this token is all that was read.
    """
    changes = [link.changes.get(number) for link in links[number:]]
    if any(c is None for c in changes) or len(changes) < 2 * number:
        return None
    before, after = np.array(changes[:-number]), np.array(changes[number:])
    rows = np.arange(maps[0].shape[2])
    if (
        len({w.shape for w in maps}) > 1
        or (after != before + 1).any()
        or any((_last_seen(w) != rows).any() for w in maps)
    ):
        return None
    places = [np.minimum(rows, changes[-1][:, None])]
    return [_put([w], places) for w in maps[-number:]], places


def _join_to_others(maps, links, before, steps, places):
    """The maps whose keys are not what is written, but a source, say."""
    number, rest = divmod(len(maps) - before, steps) if steps else (0, 1)
    if before and number == before == 1 and len(maps) > 1:
        # A start may look once, before the first step does.
        if links[1].is_same == 1 and _is_close(maps[0], maps[1]):
            maps, links, before = maps[1:], links[1:], 0
    if rest or not number or before:
        return None
    if number == len(maps):
        return maps  # of one step
    if not _are_linked([link.is_same for link in links], number):
        return None
    each = [maps[i::number] for i in range(number)]
    if all(len({w.shape for w in some}) == 1 for some in each):
        if all(_is_close(some[0], w) for some in each for w in some):
            if maps[0].shape[2] > 1:
                return [some[0] for some in each]  # read again at each step
    if places and all(_have_rows(some, places) for some in each):
        return [_put(some, places, maps[0].shape[3]) for some in each]
    if {w.shape[2] for w in maps} == {1}:
        return [np.concatenate(some, axis=2) for some in each]
    return None


def _places(maps, is_decoder):
    """Where the rows of each call belong, `(B, T)`; None if not in one map.

    A query of causal self-attention stands where the last key is that it
    sees.
    """
    first, *others = maps
    places = [_last_seen(first)]
    if (places[0] != np.arange(first.shape[2])).any():
        return None
    for weights, before in zip(others, maps, strict=False):
        if weights.shape[:2] != first.shape[:2]:
            return None
        rows, keys = weights.shape[2:]
        last, end = _last_seen(weights), places[-1][:, -1:] + 1
        if rows == keys > before.shape[3]:  # all of it is read again
            if (last != np.arange(rows)).any():
                return None
        elif keys > before.shape[3] and not is_decoder:  # a cache that grows
            if (last != np.arange(before.shape[3], keys)).any():
                return None
        elif (last != end + np.arange(rows)).any():
            # A prompt may have been read with padding, or its last token is
            # read twice.
            if len(places) > 1 or rows > 1 or (last > end).any():
                return None
            if not (is_decoder or _are_among(weights, first, last)):
                return None
        places.append(last)
    return places


def _last_seen(weights):
    """The place of the last key that each query sees, `(B, T)`."""
    is_seen = (weights > 0).any(1)
    return weights.shape[3] - 1 - is_seen[..., ::-1].argmax(-1)


def _are_among(weights, first, last):
    """Whether rows that are read twice are what they were."""
    if (last >= first.shape[2]).any():
        return False
    again = [head[:, row] for head, [row] in zip(first, last, strict=True)]
    size = min(weights.shape[3], first.shape[3])
    return _is_close(weights[:, :, 0, :size], np.stack(again)[..., :size])


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
            if row < ends[b] and not (t and row == place[b, t - 1]):
                seen = min(keys or row + 1, weights.shape[3])
                joined[b, :, row, :seen] = weights[b, :, t, :seen]
    return joined


def _have_rows(maps, places):
    return [(len(w), w.shape[2]) for w in maps] == [p.shape for p in places]
