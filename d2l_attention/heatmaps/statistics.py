"""Attention weights in numbers. A link is a pair (source, target).

NaN counts as no weight: maps of a generation have it at keys that did not
exist yet when a token was made.
"""

from pathlib import Path
from typing import NamedTuple

from d2l_attention._checks import as_array
from d2l_attention.heatmaps.selection import (
    UNREAD,
    by_path,
    check_mapping,
    is_signed,
    to_numpy,
)
import numpy as np

_CELLS = 2**18  # of shuffled rows in memory at a time: a cache holds them


def read_pharaoh(source):
    """Read alignments in the Pharaoh format, such as `0-0 1-2 2-1`.

    Each line holds the links of one sentence.

    Args:
        source: Path of a file, or an iterable of lines.

    Returns:
        List of sets of `(source position, target position)`.

    Raises:
        ValueError: If a link is not two numbers; the message names the line.
    """
    if isinstance(source, (str, Path)):
        with open(source, encoding="utf-8", newline="\n") as file:
            source = list(file)
    alignments = []
    for number, line in enumerate(source, 1):
        links = set()
        for link in line.split():
            source_position, dash, target_position = link.partition("-")
            if not (source_position.isdigit() and target_position.isdigit()):
                raise ValueError(
                    f"Line {number}: a link must be two numbers, "
                    f"`source-target`. Received: {link!r}."
                )
            links.add((int(source_position), int(target_position)))
        alignments.append(links)
    return alignments


def alignment_error_rate(sure, possible, hypothesis):
    """The error rate of alignments against gold ones, over a whole corpus.

        AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|)

    A holds the links of `hypothesis`, S the links of `sure`, and P the links
    of `sure` and `possible`.

    Source: Och and Ney (2003), section 6.

    Args:
        sure, hypothesis: Lists of sets of links, one set for each sentence.
        possible: List of sets of links that are allowed but not required, or
            None if there are none.

    Returns:
        Float in [0, 1]; 0 = every sure link is found, and no wrong one.

    Raises:
        ValueError: If the lists differ in length, or `sure` and `hypothesis`
            hold no link.
    """
    possible = sure if possible is None else possible
    if not len(sure) == len(possible) == len(hypothesis):
        raise ValueError(
            "Each list must have one set of links for each sentence. "
            f"Received: {len(sure)} sure, {len(possible)} possible, "
            f"{len(hypothesis)} hypothesis."
        )
    right = total = 0
    for s, p, a in zip(sure, possible, hypothesis, strict=True):
        right += len(a & s) + len(a & (s | p))
        total += len(a) + len(s)
    if not total:
        raise ValueError("There is no link in `sure` or `hypothesis`.")
    return 1.0 - right / total


def alignment_from_attention(weights, *, method="argmax", threshold=0.25):
    """Read links from attention weights.

    Args:
        weights: Float array `(T, S)`, rows are target tokens. A row of zeros
            gives no link.
        method: `"argmax"` links each target token to the source token with
            the largest weight; `"threshold"` links every pair whose weight is
            at least `threshold`; `"intersection"` links the pairs whose weight
            is the largest of both their row and their column.
        threshold: Float, used by the method of this name.

    Returns:
        Set of `(source position, target position)`.

    Raises:
        ValueError: If `weights` does not have two axes, or the method is
            unknown.
    """
    weights = _without_nan(weights)
    if weights.ndim != 2:
        raise ValueError(
            "`weights` must be (target, source). Received: shape "
            f"{weights.shape}."
        )
    best_of_row = weights == weights.max(axis=1, keepdims=True)
    best_of_row &= best_of_row.cumsum(axis=1) == 1  # the first of equals
    best_of_column = weights == weights.max(axis=0, keepdims=True)
    methods = {
        "argmax": best_of_row,
        "threshold": weights >= threshold,
        "intersection": best_of_row & best_of_column,
    }
    if method not in methods:
        raise ValueError(
            f"`method` must be one of {list(methods)}. Received: {method!r}."
        )
    linked = methods[method] & (weights > 0)
    return {
        (int(source), int(target)) for target, source in np.argwhere(linked)
    }


def attention_entropy(weights, *, mask=None, normalize=False):
    """How widely each query attends: −Σ w ln w, in nats.

    The entropy is 0 if all weight lies on one key, and ln S if all S keys
    have equal weights.

    Args:
        weights: Float array `(…, T, S)`. A row that does not sum to 1, since
            a sink or padding has the rest, counts as shares of its sum.
        mask: Bool array that broadcasts to `weights`, True = may attend.
        normalize: Whether to divide by the entropy of equal weights on all
            keys that may be attended and are not NaN, so that the maximum
            is 1.

    Returns:
        Float array `(…, T)`, NaN for queries that attend to nothing.

    Raises:
        ValueError: If a weight is infinite or negative, as in all functions
            below.
    """
    exists = ~np.isnan(as_array(weights, "float64"))
    weights = _shares(_without_nan(weights))
    positive = np.where(weights > 0, weights, 1.0)
    entropy = -(positive * np.log(positive)).sum(-1)
    if normalize:
        allowed = exists if mask is None else exists & as_array(mask, bool)
        keys = np.broadcast_to(allowed, weights.shape).sum(-1)
        entropy = entropy / np.log(np.maximum(keys, 2))
    return np.where(_attends(weights, mask), entropy, np.nan)


def attention_distance(weights, *, mask=None):
    """How far each query attends: Σ w |t − s|, in tokens.

    Args:
        weights: Float array `(…, T, T)` of self-attention; rows as in
            `attention_entropy`.
        mask: As in `attention_entropy`.

    Returns:
        Float array `(…, T)`, NaN for queries that attend to nothing.

    Raises:
        ValueError: If the number of keys is not the number of queries.
    """
    weights = _shares(_without_nan(self_attention(weights)))
    positions = np.arange(weights.shape[-1])
    distance = (weights * abs(positions[:, None] - positions)).sum(-1)
    return np.where(_attends(weights, mask), distance, np.nan)


def attention_rollout(weights, *, residual=0.5):
    """How much of each input reaches each position through all layers.

        Ã_l = r I + (1 − r) mean of the heads of layer l, rows scaled to sum 1
        rollout_l = Ã_l rollout_(l − 1),  rollout_0 = I

    Source: Abnar and Zuidema (2020), arXiv:2005.00928, section 3.

    Args:
        weights: Mapping or sequence of the layers of one encoder, first to
            last, each a float array `(…, H, T, T)`.
        residual: Float in [0, 1), the share r that bypasses attention.

    Returns:
        Float array `(L, …, 1, T, T)`, the rollout after each of the L layers,
        as maps of one head.

    Raises:
        ValueError: If a layer has not as many keys as queries, or `residual`
            is outside [0, 1).
    """
    if not 0 <= residual < 1:
        raise ValueError(f"`residual` must be in [0, 1). Received: {residual}.")
    layers = weights.values() if hasattr(weights, "values") else weights
    rollouts = []
    for layer in layers:
        layer = _without_nan(self_attention(layer))
        mixed = (1 - residual) * layer.mean(-3, keepdims=True)
        mixed = mixed + residual * np.eye(mixed.shape[-1])
        total = mixed.sum(-1, keepdims=True)
        mixed = mixed / np.where(total > 0, total, 1.0)
        rollouts.append(mixed @ rollouts[-1] if rollouts else mixed)
    return np.stack(rollouts)


class AttentionSink(NamedTuple):
    """How much a head attends to the first token, and to no key."""

    path: str
    head: int
    first_token: float
    no_key: float

    def __str__(self):
        return (
            f"{self.path}, head {self.head}: {self.first_token:.1%} on the "
            f"first token, {self.no_key:.1%} on no key"
        )


def attention_sinks(maps, *, mask=None):
    """How much of its weight each head parks where there is little to read.

    A softmax must put its weight somewhere, and a head that has nothing to
    look for often puts it on the first token, which is called a sink. Some
    models have a place for it that is no key: a sink logit (gpt-oss), or the 1
    in the denominator of softmax1. Their rows sum to less than 1.

    What a query may see is known from the weights: a softmax gives some
    weight to each key that it may see, so these are the keys to which any
    head of the layer gives weight. Rows that look evenly at all keys are
    padding, which Keras leaves so, unless every row of the layer is even.
    Other rows of padding count, unless `mask` is False there.

    A sharp softmax rounds small weights to 0, which is no mask. A layer that
    gives no weight to keys after the query, counted from the last key, is
    taken for causal, and two things tell a rounded weight from a hidden key.
    A window never comes back to a key that it left behind: if a query gives
    no weight to an earlier key to which a later one gives some, weights were
    rounded. And a row that is on one earlier key in each head says nothing.
    In the layers and rows where this is so, a query may see each key up to
    itself, as far back as any query of the layer looks, to which any query of
    the sentence gives weight; the last key needs none, since only its own
    query may see it, if the key before it has some. An even last row counts,
    unless another row is padding. If each row of a layer is on one key in
    each head, queries may see all keys, or in a causal layer all up to
    themselves.

    A row that can see nothing but the first token says nothing of a sink,
    since its weight there is always 1: with a causal mask, row 0 is left out.

    Source: Xiao et al. (2023), arXiv:2309.17453, section 3.1.

    Args:
        maps: Mapping of layer path to weights `(B, H, T, S)`.
        mask: Bool array `(T, S)`, `(B, 1, S)` or `(B, T, S)`, True = may
            attend, or a dict of path or pattern to one. Give it for weights
            that can be 0 without a mask, as those of sparsemax, and for
            causal masks with gaps, as of dilated windows or without the own
            token. In a causal layer, keys after the query stay hidden
            whatever it says.

    Returns:
        List of `AttentionSink(path, head, first_token, no_key)`, in the order
        of the maps. `first_token` is the mean share of the weight given to
        keys that lies on the first token, over the samples and queries that
        may see it and another key; NaN if there are none. The first token is
        the first key that any query of the sentence may see: key 0, but for
        padding before it. `no_key` is the mean of what rows lack to 1, over
        the queries that may see any key.

    Raises:
        TypeError: If `maps` is not a mapping.
        ValueError: If a layer has not four axes, or a mask does not fit it.

    Example:
        >>> scores = np.zeros((1, 1, 3, 4))
        >>> scores[..., 3] = np.log(2)  # of the sink, which is no key
        >>> exp = np.exp(scores)
        >>> weights = exp[..., :3] / exp.sum(-1, keepdims=True)
        >>> (sink,) = attention_sinks({"layer": weights})
        >>> print(sink)
        layer, head 0: 33.3% on the first token, 40.0% on no key
    """
    sinks = []
    for path, weights, visible in _layers(maps, mask):
        given = weights.sum(-1)  # (B, H, T)
        first = _choices(_first_key(visible), visible)
        counted = first.any(-1)[:, None] & (given > 0)
        on_first = _mean(_on_targets(_shares(weights), first), counted)
        sees = np.broadcast_to(visible.any(-1)[:, None], given.shape)
        lacking = _mean(np.maximum(1 - given, 0), sees)
        for head, shares in enumerate(zip(on_first, lacking, strict=True)):
            sinks.append(AttentionSink(path, head, *map(float, shares)))
    return sinks


class HeadScore(NamedTuple):
    """How much of a head's weight lies where a kind of head looks."""

    path: str
    head: int
    kind: str
    score: float
    chance: float
    null: float

    def __str__(self):
        name = f"{self.path}, head {self.head}, {self.kind}: "
        if np.isnan(self.score):
            return name + "no query has a target"
        return (
            f"{name}{self.score:.1%} "
            f"(even {self.chance:.1%}, shuffled {self.null:.1%})"
        )


def head_scores(
    maps, ids, *, mask=None, patterns=None, num_shuffles=100, seed=0
):
    """How far each head of self-attention is one of some kinds.

    A kind of head looks at the targets of each query t:

    - `"previous token"`: t − 1;
    - `"same token"`: earlier positions with the same id;
    - `"induction"`: the positions j + 1 after earlier ones with the same id,
      `ids[j] == ids[t]`, j < t;
    - `"first token"`: the first key that any query may see.

    What a query may see is known from the weights, as in `attention_sinks`:
    keys that a causal mask, a window or padding hides have no weight in any
    head. A token that no query may see is padding, and its row does not count.

    Sources: Elhage et al. (2021), *A Mathematical Framework for Transformer
    Circuits*; Olsson et al. (2022), arXiv:2209.11895. The share of the weight
    on a pattern is also what TransformerLens#235 measures; unlike there, only
    queries that have a target count, so that a score does not depend on how
    many have none.

    Args:
        maps: Mapping of layer path to weights `(B, H, T, T)`.
        ids: Int array `(B, T)`, the tokens of all these layers.
        mask: As in `attention_sinks`.
        patterns: Dict of the name of a further kind to a bool array, `(T, T)`
            or `(B, T, T)`: the targets of each query.
        num_shuffles: Positive int, shuffles for each null.
        seed: Int, of the shuffles. A layer's are the same whatever other
            layers there are.

    Returns:
        List of `HeadScore(path, head, kind, score, chance, null)`, in the
        order of the maps, heads and kinds above. `score` is the mean share of
        a row's weight that lies on its targets, over the samples and queries
        that may see a target and another key. `chance` is what it would be if
        each query looked evenly at all keys that it may see. `null` is the
        score that 95 % of shuffles stay below, which mix the weights of each
        query among the keys that it may see. All three are NaN where no query
        counts, as where `ids` repeat no token.

    Raises:
        TypeError: If `maps` is not a mapping.
        ValueError: If a layer has not as many keys as queries, or `ids` or a
            mask or a pattern do not fit it, or `num_shuffles` is not positive.

    Example:
        >>> looks_back = 0.9 * np.eye(5, k=-1) + 0.1 * np.tri(5) / 5
        >>> scores = head_scores(
        ...     {"layer": looks_back[None, None]}, np.array([[5, 6, 7, 5, 6]])
        ... )
        >>> print(scores[0])
        layer, head 0, previous token: 94.9% (even 32.1%, shuffled 71.9%)
    """
    ids = as_array(ids)
    if not np.issubdtype(ids.dtype, np.integer):
        raise ValueError(f"`ids` must be integers. Received: {ids.dtype}.")
    if num_shuffles < 1:
        raise ValueError(
            f"`num_shuffles` must be positive. Received: {num_shuffles}."
        )
    scores = []
    for path, weights, visible in _layers(maps, mask):
        batch, num_heads, t, s = weights.shape
        if t != s:
            raise ValueError(
                f"{path!r} has {t} queries and {s} keys, so it is not "
                "self-attention, whose kinds these are. `maps.select` the "
                "layers of self-attention."
            )
        if ids.shape != (batch, t):
            raise ValueError(
                f"`ids` must be {(batch, t)}, the sentences and positions of "
                f"{path!r}. `maps.select` the layers that have these ids. "
                f"Received: shape {ids.shape}."
                + (UNREAD if ids.shape == (batch, t + 1) else "")
            )
        targets = _targets(ids, visible, patterns or {})
        shares = _shares(weights)
        attends = weights.sum(-1) > 0  # (B, H, T)
        nulls = _shuffled(shares, targets.values(), visible, num_shuffles, seed)
        numbers = {}
        for (kind, chosen), null in zip(targets.items(), nulls, strict=True):
            counted = chosen.any(-1)[:, None] & attends
            even = chosen.sum(-1) / np.maximum(visible.sum(-1), 1)
            numbers[kind] = (
                _mean(_on_targets(shares, chosen), counted),
                _mean(even[:, None], counted),
                np.quantile(_per_row(null, counted), 0.95, axis=-1),
            )
        for head in range(num_heads):
            for kind, of_heads in numbers.items():
                of_head = (float(number[head]) for number in of_heads)
                scores.append(HeadScore(path, head, kind, *of_head))
    return scores


def merge_subwords(weights, query_words=None, key_words=None):
    """Weights between words from weights between pieces of words.

    The weight of a key word is the sum over its pieces; the weights of a
    query word are the mean over its pieces. Rows still sum to 1.

    Args:
        weights: Float array `(…, T, S)`.
        query_words: List with the number of the word of each of T pieces, as
            the `word_ids` of the `tokenizers` library. Neighbouring pieces
            with the same number are one word, and each None is a word of its
            own. If the list is missing, the rows stay as they are.
        key_words: The same list for the S columns.

    Returns:
        Float array `(…, words, words)`.

    Raises:
        ValueError: If a list does not have one number for each row or column.
    """
    weights = _without_nan(weights)
    keys = _membership(key_words, weights.shape[-1], "key")
    queries = _membership(query_words, weights.shape[-2], "query")
    summed = weights @ keys.T  # (…, T, words)
    return (queries / queries.sum(1, keepdims=True)) @ summed


def _membership(words, size, name):
    """Matrix `(words, pieces)`, 1 where a piece belongs to a word."""
    if words is None:
        return np.eye(size)
    words = list(words)
    if len(words) != size:
        raise ValueError(
            f"There must be a number for each of {size} {name} pieces. "
            f"Received: {len(words)} numbers."
        )
    starts = [
        word is None or i == 0 or word != words[i - 1]
        for i, word in enumerate(words)
    ]
    word_of_piece = np.cumsum(starts) - 1
    return np.eye(word_of_piece[-1] + 1)[:, word_of_piece]


def _layers(maps, mask):
    """Path, weights `(B, H, T, S)`, and what queries may see `(B, T, S)`."""
    check_mapping(maps)
    masks = by_path("mask", mask, maps)
    for path, weights in maps.items():
        weights = to_numpy(weights, f"weights of {path!r}", 4)
        exists = ~np.isnan(weights).all(1)  # (B, T, S)
        weights = _without_nan(weights)
        if masks[path] is None:
            allowed = _allowed(weights)
        else:
            allowed = _fitting(masks[path], exists.shape, path)
            if _is_causal(weights, _even_rows(weights)):
                allowed = allowed & _triangle(weights)
        yield path, weights, allowed & exists


def _fitting(mask, shape, path):
    mask = as_array(mask, bool)
    try:
        return np.broadcast_to(mask, shape)
    except ValueError:
        raise ValueError(
            f"The mask of {path!r} must fit (T, S), (B, 1, S) or (B, T, S), "
            f"here {shape[1:]}, {(shape[0], 1, shape[2])} or {shape}. "
            f"Received: shape {mask.shape}."
        ) from None


def _allowed(weights):
    """Which keys each query may see, as the weights tell, `(B, T, S)`."""
    positive = weights > 0
    visible = positive.any(1)
    on_one_key = (positive.sum(-1) <= 1).all(1)  # (B, T)
    padding = _even_rows(weights)
    causal = _is_causal(weights, padding)
    triangle = _triangle(weights)
    if on_one_key.all():
        return visible.any(-1, keepdims=True) & (triangle | (not causal))
    if causal:  # an even last row has no key after it to tell
        padding &= (visible & ~triangle).any((1, 2))[:, None]
    visible &= ~padding[..., None]
    if not causal:
        return visible
    rows, keys = np.nonzero(visible.any(0))
    farthest = (rows - keys).max(initial=-len(triangle))
    widest = triangle & ~_triangle(weights, -1 - farthest)
    seen = visible.any(1, keepdims=True)  # (B, 1, S)
    seen[..., -1] |= seen[..., -2]  # only its own query could look at it
    widest = widest & seen
    widest &= visible.any(-1, keepdims=True)
    seen_later = np.logical_or.accumulate(visible[:, ::-1], axis=1)[:, ::-1]
    gaps = widest & seen_later & ~visible
    if gaps[~on_one_key].any():
        return widest
    on_one_key &= (visible & _triangle(weights, -1)).any(-1)
    return np.where(on_one_key[..., None], widest, visible)


def _triangle(weights, shift=0):
    """The keys up to each query `(T, S)`, counted from the last key."""
    t, s = weights.shape[-2:]
    return np.tri(t, s, s - t + shift, dtype=bool)


def _is_causal(weights, padding):
    """Whether no weight lies after the query, but in rows of padding."""
    after = (weights > 0).any(1) & ~_triangle(weights)
    return not after[~padding].any()


def _even_rows(weights):
    """Rows that look evenly at all keys, `(B, T)`; none if all are even."""
    positive = weights > 0
    highest = weights.max(-1, keepdims=True)
    even = ((weights == highest) | ~positive).all((1, 3))
    return even & positive.any(1).all(-1) & (not even.all())


def _first_key(visible):
    """The first key of each sentence that any query may see, `(B, 1, S)`."""
    seen = visible.any(1, keepdims=True)
    return seen & (seen.cumsum(-1) == 1)


def _choices(targets, visible):
    """The targets `(B, T, S)` of queries that may see another key, too."""
    targets = targets & visible
    return targets & (visible & ~targets).any(-1, keepdims=True)


def _targets(ids, visible, patterns):
    """Dict of kind of head to its targets, `(B, T, T)`."""
    t = ids.shape[1]
    same = (ids[:, :, None] == ids[:, None]) & np.tri(t, k=-1, dtype=bool)
    after = np.roll(same, 1, axis=-1)  # its last column is empty
    kinds = {
        "previous token": np.eye(t, k=-1, dtype=bool),
        "same token": same,
        "induction": after,
        "first token": _first_key(visible),
    }
    for name, pattern in patterns.items():
        pattern = as_array(pattern)
        fits = pattern.shape in ((t, t), same.shape)
        if name in kinds or pattern.dtype != bool or not fits:
            raise ValueError(
                f"A pattern must have a name of its own and be a bool array, "
                f"{(t, t)} or {same.shape}. Received: {name!r}, "
                f"{pattern.dtype}, shape {pattern.shape}."
            )
        kinds[name] = pattern
    tokens = visible.any(1)[..., None]  # (B, T, 1)
    return {
        kind: _choices(targets & tokens, visible)
        for kind, targets in kinds.items()
    }


def _on_targets(shares, targets):
    """How much of each row lies on its targets, `(B, H, T)`."""
    return np.einsum("bhts,bts->bht", shares, targets.astype(shares.dtype))


def _mean(rows, counted):
    """Mean over samples and queries that count, `(H,)`; NaN if none does."""
    return _per_row((rows * counted).sum((0, 2))[:, None], counted)[:, 0]


def _per_row(sums, counted):
    """Sums `(H, …)` by the number of rows that count; NaN if none does."""
    number = counted.sum((0, 2))[:, None]
    means = np.full(sums.shape, np.nan)
    return np.divide(sums, number, out=means, where=number > 0)


def _shuffled(shares, targets, visible, num_shuffles, seed):
    """Sums of the weight on targets after shuffles, `(kinds, H, shuffles)`.

    To shuffle the weights of a row and add those on its n targets is to add
    the weights on n keys drawn at random. A draw takes the n keys with the
    lowest of random numbers.
    """
    random = np.random.default_rng(seed)
    targets = np.stack(list(targets))
    number = targets.sum(-1)  # (kinds, B, T)
    batch, num_heads, t, s = shares.shape
    sums = np.zeros((len(targets), num_heads, num_shuffles))
    size = max(1, _CELLS // (num_shuffles * s))
    for sample, start in np.ndindex(batch, -(-t // size)):
        rows = slice(start * size, (start + 1) * size)
        seen = visible[sample, rows]
        width = s - seen.any(0)[::-1].argmax()  # up to the last key seen
        seen = seen[:, :width]
        drawn = random.random((num_shuffles, *seen.shape), "float32")
        drawn[:, ~seen] = 2.0
        ranked = np.sort(drawn)
        flat = shares[sample, :, rows, :width].astype("float32")
        flat = flat.reshape(num_heads, -1)
        for of_kind, n in zip(sums, number[:, sample, rows], strict=True):
            last = np.maximum(n - 1, 0)[None, :, None]
            last = np.take_along_axis(ranked, last, -1)
            chosen = drawn <= np.where(n > 0, last[..., 0], -1.0)[..., None]
            chosen = chosen.reshape(num_shuffles, -1).astype("float32")
            of_kind += flat @ chosen.T
    return sums


def _without_nan(weights):
    """Float64 weights, 0 where a cell is NaN."""
    weights = as_array(weights, "float64")
    if np.isinf(weights).any():
        raise ValueError("The weights must be finite. Received: infinity.")
    if is_signed(weights):
        raise ValueError(
            "The weights must be shares, and signed ones, as those of linear "
            f"attention, are none. Received: a weight of {weights.min():.3g}."
        )
    return np.where(np.isnan(weights), 0.0, weights)


def _shares(weights):
    """Each weight as a share of its row; a row of zeros stays."""
    sums = weights.sum(-1, keepdims=True)
    return np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0)


def _attends(weights, mask):
    """Whether each query attends to any key."""
    allowed = True if mask is None else as_array(mask, bool).any(-1)
    return (weights.sum(-1) > 0) & allowed


def self_attention(weights):
    """Weights `(…, T, T)` as float64; refuse another shape."""
    weights = as_array(weights, "float64")
    if weights.ndim < 2 or weights.shape[-1] != weights.shape[-2]:
        raise ValueError(
            "Self-attention must have as many keys as queries. Received: "
            f"weights of shape {weights.shape}."
        )
    return weights
