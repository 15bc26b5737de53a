"""Attention weights in numbers. A link is a pair (source, target)."""

from pathlib import Path

import numpy as np


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
    weights = np.asarray(weights)
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
            keys that may be attended, so that the maximum is 1.

    Returns:
        Float array `(…, T)`, NaN for queries that attend to nothing.
    """
    weights = _shares(np.asarray(weights, "float64"))
    positive = np.where(weights > 0, weights, 1.0)
    entropy = -(positive * np.log(positive)).sum(-1)
    if normalize:
        allowed = np.ones(weights.shape) if mask is None else mask
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
    weights = _shares(self_attention(weights))
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
        Float array `(L, …, T, T)`, the rollout after each of the L layers.

    Raises:
        ValueError: If a layer has not as many keys as queries, or `residual`
            is outside [0, 1).
    """
    if not 0 <= residual < 1:
        raise ValueError(f"`residual` must be in [0, 1). Received: {residual}.")
    layers = weights.values() if hasattr(weights, "values") else weights
    rollouts = []
    for layer in layers:
        mixed = (1 - residual) * self_attention(layer).mean(-3)
        mixed = mixed + residual * np.eye(mixed.shape[-1])
        total = mixed.sum(-1, keepdims=True)
        mixed = mixed / np.where(total > 0, total, 1.0)
        rollouts.append(mixed @ rollouts[-1] if rollouts else mixed)
    return np.stack(rollouts)


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
    weights = np.asarray(weights, "float64")
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


def _shares(weights):
    """Each weight as a share of its row; a row of zeros stays."""
    sums = weights.sum(-1, keepdims=True)
    return np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0)


def _attends(weights, mask):
    """Whether each query attends to any key."""
    allowed = True if mask is None else np.asarray(mask, bool).any(-1)
    return (weights.sum(-1) > 0) & allowed


def self_attention(weights):
    """Weights `(…, T, T)` as float64; refuse another shape."""
    weights = np.asarray(weights, "float64")
    if weights.ndim < 2 or weights.shape[-1] != weights.shape[-2]:
        raise ValueError(
            "Self-attention must have as many keys as queries. Received: "
            f"weights of shape {weights.shape}."
        )
    return weights
