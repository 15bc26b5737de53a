"""What a page shows when it is opened."""

from numbers import Integral

VIEWS = ("overview", "map", "lines")


def first_shown(maps, heads, layer, head, view):
    """Places of the layer and head shown first; -1 is the mean, None any."""
    paths = list(maps)
    if layer is not None and layer not in paths:
        raise ValueError(
            f"`layer` must be one of the layers shown: {paths}. "
            f"Received: {layer!r}."
        )
    place = 0 if layer is None else paths.index(layer)
    numbers = head_numbers(maps[paths[place]][0], heads)
    if head not in (None, "mean", *numbers):
        raise ValueError(
            f"`head` must be 'mean' or one of {numbers}, the heads shown of "
            f"layer {paths[place]!r}. Received: {head!r}."
        )
    if view not in VIEWS:
        raise ValueError(
            f"`view` must be one of {list(VIEWS)}. Received: {view!r}."
        )
    if head == "mean":
        head = -1
    elif head is not None:
        head = numbers.index(head)
    return {"layer": place, "head": head, "view": view}


def check_sentence(maps, sentence_b):
    """Refuse a second sentence that begins in no layer."""
    if sentence_b is None:
        return
    longest = max(min(found[0].shape[1:]) for found in maps.values())
    whole = isinstance(sentence_b, Integral)
    if not whole or not 0 < sentence_b < longest:
        raise ValueError(
            "`sentence_b` must be the position of a token behind the first, "
            f"an int from 1 to {longest - 1}. Received: {sentence_b!r}."
        )


def sentence_start(matrices, sentence_b):
    """The place where sentence B begins, or None if the layer is shorter."""
    if sentence_b is None or sentence_b >= min(matrices.shape[1:]):
        return None
    return int(sentence_b)


def head_numbers(matrices, heads):
    """The numbers that the shown heads have in their layer."""
    return [int(n) for n in (range(len(matrices)) if heads is None else heads)]
