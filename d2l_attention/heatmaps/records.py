"""Weights as they are noted while a model runs, and as they leave it."""

from keras import ops, tree

REASONS = {
    "none": "its mechanism forms no weights for pairs of queries and keys",
    "fused": "no softmax of Keras over keys was seen in it",
    "features": "its softmax does not run over positions of its inputs",
    "axes": "the axes of its softmax are not those of a map, `(B, H, T, S)`: "
    "it runs over blocks of positions, or over no positions at all",
    "loop": "it ran inside a loop of the graph, which its weights cannot "
    "leave; a model with `return_attention_scores` can be asked for them",
    "training": "it ran inside a loop, and asking its model once more would "
    "drop other units",
    "unknown": "its softmax looks like attention, but it is of no known kind; "
    "`register_attention_adapter` adds kinds",
}


def beside(outputs, weights):
    """The weights as the outputs are: an array, or a tensor of their graph.

    None if the weights belong to a graph within, such as that of a loop.
    """
    array = _array(weights)
    if array is not None:
        return array
    output = next(x for x in tree.flatten(outputs) if hasattr(x, "shape"))
    if _array(output) is not None:
        return None
    same = getattr(weights, "graph", None) is getattr(output, "graph", None)
    return weights if same else None


def _array(tensor):
    try:
        return ops.convert_to_numpy(tensor)
    except Exception:  # each backend has its own for a tensor of a graph
        return None


def join_steps(rows, num_steps, go_backwards):
    """The weights of the steps of a recurrent layer, as few maps.

    Keras runs the first step once more, before the others, where it asks a
    step for its dtype.

    Args:
        rows: List of weights `(B, H, T, S)`, in the order of the calls.
        num_steps: Int, steps of the layer.
        go_backwards: Whether the last step came first.

    Returns:
        List of weights: one map for each call within a step, a row for each
        step, in the order of the inputs; or the rows, if they are not that.
    """
    calls, rest = divmod(len(rows), num_steps + 1)  # calls in a step
    if rest:
        calls = len(rows) // num_steps
    else:
        rows = rows[calls:]
    one_query = {weights.shape[2] for weights in rows} == {1}
    if not one_query or len(rows) != calls * num_steps:
        return rows
    each = [rows[i::calls] for i in range(calls)]
    if go_backwards:
        each = [steps[::-1] for steps in each]
    return [ops.concatenate(steps, axis=2) for steps in each]
