"""Attention of nodes to the nodes from which an edge leads to them."""

from d2l_attention._checks import check_positive
from d2l_attention._config import Configurable
from d2l_attention.layers.base import output_spec
from d2l_attention.layers.masking import check_mask, masked_softmax
import keras
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
        >>> from d2l_attention.layers.graph import edge_softmax
        >>> scores, targets = np.zeros(3, "float32"), np.array([0, 0, 1])
        >>> np.array(edge_softmax(scores, targets, num_nodes=2)).tolist()
        [0.5, 0.5, 1.0]
    """
    highest = ops.segment_max(scores, targets, num_segments=num_nodes)
    highest = ops.stop_gradient(ops.take(highest, targets, axis=0))
    shifted = ops.subtract(scores, highest)
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
        >>> from d2l_attention.layers.graph import adjacency_to_edges
        >>> adjacency = np.array([[False, True], [False, False]])
        >>> adjacency_to_edges(adjacency).tolist()  # 0 may attend to 1
        [[1, 0]]
    """
    targets, sources = np.nonzero(ops.convert_to_numpy(adjacency))
    return np.stack([sources, targets], axis=1).astype("int32")


def with_self_loops(edges, num_nodes):
    """The edges and then a self-loop for each node, and which of them count.

    Self-loops among the given edges do not: they would count twice.
    """
    nodes = ops.arange(num_nodes, dtype=edges.dtype)
    loops = ops.stack([nodes, nodes], axis=1)  # (N, 2)
    counts = ops.concatenate(
        [edges[:, 0] != edges[:, 1], ops.ones_like(nodes, dtype="bool")]
    )
    return ops.concatenate([edges, loops], axis=0), counts


class GraphAttention(Configurable, keras.Layer):
    """Several heads of attention between neighbours in a graph.

        weights[t, s] = softmax over the neighbours s of score(t, s)
        output[t]     = Σ_s weights[t, s] value[s]

    A subclass implements `project` and `score`. `GraphDotProductAttention`
    describes the arguments of all.
    """

    def __init__(
        self, num_heads, key_dim, *, self_loops=True, concat=True, **kwargs
    ):
        super().__init__(**kwargs)
        self.num_heads = check_positive("num_heads", num_heads)
        self.key_dim = check_positive("key_dim", key_dim)
        self.self_loops = self_loops
        self.concat = concat

    def add_kernel(self, features, name):
        """A matrix `(D, H K)` that projects nodes for every head."""
        return self.add_weight(
            (features, self.num_heads * self.key_dim), name=name
        )

    def add_score_kernel(self, name):
        """A vector `(H, K)` that turns each head's features into a score."""
        shape = (self.num_heads, self.key_dim)
        limit = (6 / (self.key_dim + 1)) ** 0.5
        uniform = keras.initializers.RandomUniform(-limit, limit)
        return self.add_weight(shape, uniform, name=name)

    def to_heads(self, x, kernel):
        """Nodes `(N, D)` times a kernel `(D, H K)`, as `(N, H, K)`."""
        projected = ops.matmul(x, kernel)
        return ops.reshape(projected, (-1, self.num_heads, self.key_dim))

    def project(self, x):
        """Queries, keys and values of the nodes, each `(N, H, K)`."""
        raise NotImplementedError

    def score(self, query, key):
        """Scores `(…, H)` of queries and keys `(…, H, K)`."""
        raise NotImplementedError

    def call(
        self, x, adjacency=None, edges=None, return_attention_scores=False
    ):
        _check_inputs(x, adjacency, edges)
        query, key, value = self.project(x)  # (N, H, K)
        if edges is None:
            heads, weights = self._attend_densely(query, key, value, adjacency)
        else:
            heads, weights = self._attend_edges(query, key, value, edges)
        if self.concat:
            size = self.num_heads * self.key_dim
            output = ops.reshape(heads, (-1, size))  # (N, H K)
        else:
            output = ops.mean(heads, axis=1)  # (N, K)
        return (output, weights) if return_attention_scores else output

    def _attend_densely(self, query, key, value, adjacency):
        """Heads `(N, H, K)` and weights `(H, N, N)`."""
        adjacency = ops.convert_to_tensor(adjacency)
        check_mask(adjacency, (query.shape[0], query.shape[0]))
        if self.self_loops:
            adjacency = adjacency | ops.eye(ops.shape(query)[0], dtype="bool")
        scores = self.score(query[:, None], key[None])  # (N, N, H)
        scores = ops.transpose(scores, (2, 0, 1))  # (H, N, N)
        weights = masked_softmax(scores, adjacency)
        return ops.einsum("hts,shk->thk", weights, value), weights

    def _attend_edges(self, query, key, value, edges):
        """Heads `(N, H, K)` and weights `(edges, H)`."""
        edges = ops.convert_to_tensor(edges)
        _check_edges(edges)
        num_nodes = ops.shape(query)[0]
        counts = ops.ones_like(edges[:, 0], dtype="bool")  # (edges,)
        if self.self_loops:
            edges, counts = with_self_loops(edges, num_nodes)
        sources, targets = edges[:, 0], edges[:, 1]
        query = ops.take(query, targets, axis=0)  # (edges, H, K)
        key = ops.take(key, sources, axis=0)
        value = ops.take(value, sources, axis=0)
        scores = self.score(query, key)  # (edges, H)
        scores = ops.where(counts[:, None], scores, -float("inf"))
        weights = edge_softmax(scores, targets, num_nodes)
        weighted = weights[..., None] * value  # (edges, H, K)
        heads = ops.segment_sum(weighted, targets, num_segments=num_nodes)
        return heads, weights

    def compute_output_shape(self, x_shape):
        heads = self.num_heads if self.concat else 1
        return (x_shape[0], heads * self.key_dim)

    def compute_output_spec(
        self, x, adjacency=None, edges=None, return_attention_scores=False
    ):
        n, h = x.shape[0], self.num_heads
        if edges is None:
            weights_shape = (h, n, n)
        else:
            sizes = (edges.shape[0], n if self.self_loops else 0)
            weights_shape = (None if None in sizes else sum(sizes), h)
        return output_spec(
            self,
            self.compute_output_shape(x.shape),
            weights_shape,
            return_attention_scores,
        )


def _check_inputs(x, adjacency, edges):
    if (adjacency is None) == (edges is None):
        raise ValueError(
            "Give the edges once, as `adjacency` or as `edges`. Received: "
            f"adjacency={adjacency}, edges={edges}."
        )
    if len(x.shape) != 2:
        raise ValueError(
            "x must be (N, D), the nodes of one graph. Received: shape "
            f"{tuple(x.shape)}."
        )


def _check_edges(edges):
    if len(edges.shape) != 2 or edges.shape[1] != 2:
        raise ValueError(
            "`edges` must be an int tensor (edges, 2) of (source, target). "
            f"Received: shape {tuple(edges.shape)}."
        )


@keras.saving.register_keras_serializable("d2l_attention")
class GraphDotProductAttention(GraphAttention):
    """Scaled dot-product attention between neighbours.

        score(t, s) = (W_q x_t) · (W_k x_s) / √K,  value_s = W_v x_s

    Source: document 002, section 5 (self-attention for graphs); Vaswani et
    al. (2017), arXiv:1706.03762, for the score.

    Args:
        num_heads, key_dim: Positive ints, H, and K features of each head.
        self_loops: Whether every node is also its own neighbour.
        concat: Whether the heads lie side by side (H K features) or are
            averaged (K features), as in a last layer.

    Call arguments:
        x: Float tensor `(N, D)`, the nodes of one graph. Several graphs are
            one graph without edges between them.
        adjacency: Bool tensor `(N, N)`; node t may attend to node s where
            `adjacency[t, s]` is True.
        edges: Int tensor `(edges, 2)` of `(source, target)`, in place of
            `adjacency`; no edge may occur twice.
        return_attention_scores: If True, also return the weights: `(H, N,
            N)`, or `(edges, H)` with `edges`. Self-loops are N more edges
            after the given ones; a given edge from a node to itself then
            has weight 0, since it would count twice.

    Returns:
        Float tensor `(N, H K)` or `(N, K)`, and if asked the weights. A node
        without neighbours gets zeros.

    Raises:
        ValueError: If a size is not positive, shapes do not match, or
            `adjacency` and `edges` are both given or both missing.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import GraphDotProductAttention
        >>> layer = GraphDotProductAttention(2, key_dim=3, self_loops=False)
        >>> edges = np.array([[0, 1], [0, 2]])  # from 0 to 1, from 0 to 2
        >>> output = layer(np.ones((3, 4)), edges=edges)
        >>> np.array(output)[0].tolist()  # nothing leads to node 0
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """

    def build(self, x_shape):
        names = ("W_q", "W_k", "W_v")
        self.kernels = [self.add_kernel(x_shape[-1], name) for name in names]

    def project(self, x):
        return [self.to_heads(x, kernel) for kernel in self.kernels]

    def score(self, query, key):
        return ops.sum(query / self.key_dim**0.5 * key, axis=-1)


@keras.saving.register_keras_serializable("d2l_attention")
class GATAttention(GraphAttention):
    """Graph attention (GAT): the score is additive, without a hidden layer.

        score(t, s) = LeakyReLU(a_tᵀ W x_t + a_sᵀ W x_s),  value_s = W x_s

    The query adds the same number to all its scores, so every query ranks the
    keys in the same order: the attention is *static* (Brody et al., 2022,
    section 3).

    Source: Veličković et al. (2018), arXiv:1710.10903, section 2.1.

    Args:
        num_heads, key_dim, self_loops, concat: As in
            `GraphDotProductAttention`.

    The call, its results and its errors are as there.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import GATAttention
        >>> layer, x = GATAttention(num_heads=2, key_dim=3), np.ones((3, 4))
        >>> edges = np.array([[0, 1], [0, 2]])  # from 0 to 1, from 0 to 2
        >>> _, weights = layer(x, edges=edges, return_attention_scores=True)
        >>> np.array(weights)[:, 0].round(2).tolist()  # loops after the edges
        [0.5, 0.5, 1.0, 0.5, 0.5]
    """

    def build(self, x_shape):
        self.kernel = self.add_kernel(x_shape[-1], "W")
        self.query_kernel = self.add_score_kernel("a_t")
        self.key_kernel = self.add_score_kernel("a_s")

    def project(self, x):
        heads = self.to_heads(x, self.kernel)  # (N, H, K)
        return heads, heads, heads

    def score(self, query, key):
        of_query = ops.sum(query * self.query_kernel, axis=-1)
        of_key = ops.sum(key * self.key_kernel, axis=-1)
        return ops.leaky_relu(of_query + of_key, 0.2)


@keras.saving.register_keras_serializable("d2l_attention")
class GATv2Attention(GraphAttention):
    """Graph attention whose score is a perceptron of query and key (GATv2).

        score(t, s) = aᵀ LeakyReLU(W_t x_t + W_s x_s),  value_s = W_s x_s

    Source: Brody et al. (2022), arXiv:2105.14491, section 3.2.

    Args:
        num_heads, key_dim, self_loops, concat: As in
            `GraphDotProductAttention`.

    The call, its results and its errors are as there.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import GATv2Attention
        >>> layer, x = GATv2Attention(num_heads=2, key_dim=3), np.ones((3, 4))
        >>> path = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], bool)
        >>> _, weights = layer(x, adjacency=path, return_attention_scores=True)
        >>> np.array(weights)[0].round(2).tolist()  # with self-loops
        [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]]
    """

    def build(self, x_shape):
        self.query_kernel = self.add_kernel(x_shape[-1], "W_t")
        self.key_kernel = self.add_kernel(x_shape[-1], "W_s")
        self.score_kernel = self.add_score_kernel("a")

    def project(self, x):
        query = self.to_heads(x, self.query_kernel)  # (N, H, K)
        key = self.to_heads(x, self.key_kernel)  # (N, H, K)
        return query, key, key

    def score(self, query, key):
        hidden = ops.leaky_relu(query + key, 0.2)
        return ops.sum(hidden * self.score_kernel, axis=-1)
