"""Weights as they are noted while a model runs, and as they leave it."""

from keras import ops, tree


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
