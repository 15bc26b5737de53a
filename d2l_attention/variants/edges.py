"""Lists of edges: the softmax over them, and where they come from."""

from keras import ops
import numpy as np


def edge_softmax(scores, targets, num_nodes):
    """Softmax over the edges that lead to the same node.

        weights[e] = exp(scores[e]) / Σ exp(scores[f])
        over the edges f with targets[f] = targets[e]

    Args:
        scores: Float tensor `(edges, …)`.
        targets: Int tensor `(edges,)`, the node where each edge ends.
        num_nodes: Int, N.

    Returns:
        Float tensor `(edges, …)`; the weights of each target sum to 1.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import edge_softmax
        >>> scores, targets = np.zeros(3, "float32"), np.array([0, 0, 1])
        >>> np.array(edge_softmax(scores, targets, num_nodes=2)).tolist()
        [0.5, 0.5, 1.0]
    """
    highest = ops.segment_max(scores, targets, num_segments=num_nodes)
    shifted = scores - ops.stop_gradient(ops.take(highest, targets, axis=0))
    exponentials = ops.exp(shifted)
    total = ops.segment_sum(exponentials, targets, num_segments=num_nodes)
    return exponentials / ops.take(total, targets, axis=0)


def adjacency_to_edges(adjacency):
    """The list of edges of an adjacency matrix.

    Args:
        adjacency: Bool array `(N, N)`. Rows are targets, columns are sources,
            as in every mask of this package: where `adjacency[t, s]` is True,
            node t may attend to node s.

    Returns:
        int32 array `(edges, 2)` of `(source, target)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import adjacency_to_edges
        >>> adjacency = np.array([[False, True], [False, False]])
        >>> adjacency_to_edges(adjacency).tolist()  # 0 may attend to 1
        [[1, 0]]
    """
    targets, sources = np.nonzero(adjacency)
    return np.stack([sources, targets], axis=1).astype("int32")


def with_self_loops(edges, num_nodes):
    """The edges with a self-loop for each node behind them.

    Args:
        edges: Int tensor `(edges, 2)` of `(source, target)`.
        num_nodes: Int, N.

    Returns:
        Int tensor `(edges + N, 2)`, and a bool tensor `(edges + N,)`, False
        at the self-loops among the given edges, which would count twice.
    """
    nodes = ops.arange(num_nodes, dtype=edges.dtype)
    loops = ops.stack([nodes, nodes], axis=1)  # (N, 2)
    counts = ops.concatenate(
        [edges[:, 0] != edges[:, 1], ops.ones_like(nodes, dtype="bool")]
    )
    return ops.concatenate([edges, loops], axis=0), counts
