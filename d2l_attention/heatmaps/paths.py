"""Layers by path: `"decoder/block_0/cross_attention"` and patterns of it."""

import fnmatch


def select_layers(paths, layers=None):
    """The paths that `layers` names.

    Args:
        paths: Iterable of str.
        layers: List of paths, one pattern with `*`, or None for all.

    Returns:
        List of str.

    Raises:
        ValueError: If a named path, or any path of the pattern, is missing.
    """
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
