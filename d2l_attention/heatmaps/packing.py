"""Weights as text that is short enough for a page.

Each layer is deflated and written in base64. Small layers keep 16 bits of a
weight, long ones 8 bits.
"""

import base64
import zlib

import numpy as np

SMALL = 64  # most queries and keys of a layer that keeps 16 bits
# The weights of a page of 2 MB; the rest is for tokens, style and scripts.
ROOM = 1_880_000
FINE = 65_534  # levels of 16 bits; one more value says "no weight"
COARSE = (254, 127, 63, 48)  # levels of 8 bits; fewer levels deflate better


def packed_size(maps):
    """The most characters that the weights of `maps` can take.

    Args:
        maps: Dict of path to an array `(H, T, S)`.

    Returns:
        Int.
    """
    return sum(
        matrices.size * (2 if _is_small(matrices) else 1) * 4 // 3
        for matrices in maps.values()
    )


def pack_weights(maps, most):
    """Deflate all layers, coarser where the page would become too long.

    The lines of a causal map fade with the number of keys, so a long layer
    is measured by the largest weight of each row, not by the largest of all.

    Args:
        maps: Dict of path to a masked array `(H, T, S)`; masked cells have no
            weight.
        most: Float, the largest weight of all maps.

    Returns:
        Dict of path to a dict for the page: `levels`, `weights` and, for long
        layers, `peaks`, the largest weight of each row.
    """
    packed = {
        path: _pack_small(matrices, most)
        for path, matrices in maps.items()
        if _is_small(matrices)
    }
    taken = sum(len(layer["weights"]) for layer in packed.values())
    rest = {path: maps[path] for path in maps if path not in packed}
    for levels in COARSE:
        long = {path: _pack_long(rest[path], levels) for path in rest}
        if taken + sum(_length(layer) for layer in long.values()) <= ROOM:
            break
    packed |= long
    return {path: packed[path] for path in maps}


def _is_small(matrices):
    return max(matrices.shape[1:]) <= SMALL


def _pack_small(matrices, most):
    cells = np.rint(matrices.filled(0) / most * FINE)
    cells = np.where(np.ma.getmaskarray(matrices), FINE + 1, cells)
    pairs = cells.astype("<u2").reshape(-1, 1).view("u1")
    # All low bytes stand before all high bytes, which deflate better alone.
    return {"levels": FINE, "weights": _deflate(pairs.T.tobytes())}


def _pack_long(matrices, levels):
    values = matrices.filled(0)
    peaks = values.max(-1).astype("<f4")
    scale = np.where(peaks > 0, peaks, 1).astype("f8")
    cells = np.rint(values / scale[..., None] * levels)
    cells = np.where(np.ma.getmaskarray(matrices), 255, cells)
    return {
        "levels": levels,
        "weights": _deflate(cells.astype("u1").tobytes()),
        "peaks": _deflate(peaks.tobytes()),
    }


def _length(layer):
    return len(layer["weights"]) + len(layer["peaks"])


def _deflate(content):
    """The shorter of two ways: runs of equal bytes, or each byte alone.

    Random weights have no runs, and looking for some costs a tenth.
    """
    found = []
    for strategy in (zlib.Z_DEFAULT_STRATEGY, zlib.Z_HUFFMAN_ONLY):
        packer = zlib.compressobj(strategy=strategy)
        found.append(packer.compress(content) + packer.flush())
    return base64.b64encode(min(found, key=len)).decode()
