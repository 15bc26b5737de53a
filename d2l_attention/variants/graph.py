"""Attention along the edges of a graph.

The nodes are the positions; a node attends to those that an edge leads from.
Edges come as a mask of pairs, or as a list, which costs no (N, N) tensor.
"""

from d2l_attention._checks import check_positive
from d2l_attention.masking import check_mask, masked_softmax
import keras
from keras import ops

_register = keras.saving.register_keras_serializable("d2l_attention")


def edge_softmax(scores, targets, num_nodes):
    """Softmax over the edges that lead to the same node.

    Args:
        scores: Float tensor `(edges, …)`.
        targets: Int tensor `(edges,)`, the node where each edge ends.
        num_nodes: Int, N.

    Returns:
        Float tensor `(edges, …)`; those of one target sum to 1.

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
    """The edges of an adjacency matrix, as a list.

    Args:
        adjacency: Bool array `(N, N)`. Row = target, column = source, as in
            every mask of this package: `adjacency[t, s]` says that t may
            attend to s.

    Returns:
        int32 array `(edges, 2)` of `(source, target)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import adjacency_to_edges
        >>> adjacency = np.array([[False, True], [False, False]])
        >>> adjacency_to_edges(adjacency).tolist()  # 0 may attend to 1
        [[1, 0]]
    """
    import numpy as np

    targets, sources = np.nonzero(adjacency)
    return np.stack([sources, targets], axis=1).astype("int32")


class _GraphAttention(keras.Layer):
    """Several heads of attention between neighbours; a subclass scores.

    It gives `project` and `score`, and its docstring the arguments.
    """

    def __init__(
        self, num_heads, key_dim, *, self_loops=True, concat=True, **kwargs
    ):
        super().__init__(**kwargs)
        self.num_heads = check_positive("num_heads", num_heads)
        self.key_dim = check_positive("key_dim", key_dim)
        self.self_loops, self.concat = self_loops, concat

    def project(self, x):
        """Per head and node: what queries, keys and values are, `(N, H, K)`."""
        raise NotImplementedError

    def score(self, query, key):
        """Scores `(…, H)` of `(…, H, K)` and `(…, H, K)`."""
        raise NotImplementedError

    def call(
        self, x, adjacency=None, edges=None, return_attention_scores=False
    ):
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
        attend = self._attend_densely if edges is None else self._attend_edges
        heads, weights = attend(
            *self.project(x), adjacency if edges is None else edges
        )
        if self.concat:
            size = self.num_heads * self.key_dim
            output = ops.reshape(heads, (-1, size))
        else:
            output = ops.mean(heads, axis=1)
        return (output, weights) if return_attention_scores else output

    def _attend_densely(self, query, key, value, adjacency):
        adjacency = ops.convert_to_tensor(adjacency)
        num_nodes = query.shape[0]
        check_mask(adjacency, (num_nodes, num_nodes))
        if self.self_loops:
            adjacency = adjacency | ops.eye(ops.shape(query)[0], dtype="bool")
        scores = self.score(query[:, None], key[None])  # (N, N, H)
        scores = ops.transpose(scores, (2, 0, 1))
        weights = masked_softmax(scores, adjacency)
        return ops.einsum("hts,shk->thk", weights, value), weights

    def _attend_edges(self, query, key, value, edges):
        edges = ops.convert_to_tensor(edges)
        _check_edges(edges)
        num_nodes = ops.shape(query)[0]
        counted = ops.ones_like(edges[:, 0], dtype="bool")
        if self.self_loops:
            nodes = ops.arange(num_nodes, dtype=edges.dtype)
            loops = ops.stack([nodes, nodes], axis=1)
            counted = ops.concatenate(
                [edges[:, 0] != edges[:, 1], ops.ones_like(nodes, dtype="bool")]
            )
            edges = ops.concatenate([edges, loops], axis=0)
        sources, targets = edges[:, 0], edges[:, 1]
        scores = self.score(
            ops.take(query, targets, axis=0), ops.take(key, sources, axis=0)
        )
        scores = ops.where(counted[:, None], scores, -float("inf"))
        weights = edge_softmax(scores, targets, num_nodes)
        read = weights[..., None] * ops.take(value, sources, axis=0)
        return ops.segment_sum(read, targets, num_segments=num_nodes), weights

    def _heads(self, x, kernel):
        """`(N, D)` times `(D, H K)`, as `(N, H, K)`."""
        projected = ops.matmul(x, kernel)
        return ops.reshape(projected, (-1, self.num_heads, self.key_dim))

    def _add_kernel(self, features, name):
        return self.add_weight(
            (features, self.num_heads * self.key_dim), name=name
        )

    def _add_score_kernel(self, name):
        shape = (self.num_heads, self.key_dim)
        limit = (6 / (self.key_dim + 1)) ** 0.5
        uniform = keras.initializers.RandomUniform(-limit, limit)
        return self.add_weight(shape, uniform, name=name)

    def compute_output_shape(self, x_shape):
        heads = self.num_heads if self.concat else 1
        return (x_shape[0], heads * self.key_dim)

    def compute_output_spec(
        self, x, adjacency=None, edges=None, return_attention_scores=False
    ):
        n, h = x.shape[0], self.num_heads
        if edges is None:
            shape = (h, n, n)
        else:
            sizes = (edges.shape[0], n if self.self_loops else 0)
            shape = (None if None in sizes else sum(sizes), h)
        output, weights = (
            keras.KerasTensor(s, dtype=self.compute_dtype)
            for s in (self.compute_output_shape(x.shape), shape)
        )
        return (output, weights) if return_attention_scores else output

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "self_loops": self.self_loops,
            "concat": self.concat,
        }


def _check_edges(edges):
    if len(edges.shape) != 2 or edges.shape[1] != 2:
        raise ValueError(
            "`edges` must be an int tensor (edges, 2) of (source, target). "
            f"Received: shape {tuple(edges.shape)}."
        )


@_register
class GraphDotProductAttention(_GraphAttention):
    """Scaled dot-product attention between neighbours.

        score(t, s) = (W_q x_t) · (W_k x_s) / √K,  value_s = W_v x_s

    Source: document 002, section 5 (self-attention for graphs); the score is
    that of Vaswani et al. (2017), arXiv:1706.03762.

    Args:
        num_heads: Positive int, H.
        key_dim: Positive int, K features of each head.
        self_loops: Whether every node is its own neighbour too.
        concat: Whether heads lie side by side (H K features); otherwise
            they are averaged (K features), as in a last layer.

    Call arguments:
        x: Float tensor `(N, D)`, the nodes of one graph; several graphs lie
            in one as blocks.
        adjacency: Bool tensor `(N, N)`; row t may attend to column s.
        edges: Int tensor `(edges, 2)` of `(source, target)`, each at most
            once, in place of `adjacency`.
        return_attention_scores: If True, also return the weights: `(H, N,
            N)`, or `(edges, H)` with `edges`. Self-loops are N more edges
            behind those given; a given edge from a node to itself then has
            weight 0, since it would count twice.

    Returns:
        Float tensor `(N, H K)` or `(N, K)`, and if asked the weights. A node
        without neighbours gets zeros.

    Raises:
        ValueError: If a size is not positive, shapes do not match, or not
            exactly one of `adjacency` and `edges` is given.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import GraphDotProductAttention
        >>> layer = GraphDotProductAttention(2, key_dim=3, self_loops=False)
        >>> edges = np.array([[0, 1], [0, 2]])  # from 0 to 1, from 0 to 2
        >>> output, weights = layer(
        ...     np.ones((3, 4)), edges=edges, return_attention_scores=True
        ... )
        >>> np.array(output)[0].tolist()  # nothing leads to node 0
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
        >>> np.array(weights).tolist()  # of two edges and two heads
        [[1.0, 1.0], [1.0, 1.0]]
    """

    def build(self, x_shape):
        self.kernels = [
            self._add_kernel(x_shape[-1], name)
            for name in ("W_q", "W_k", "W_v")
        ]

    def project(self, x):
        return [self._heads(x, kernel) for kernel in self.kernels]

    def score(self, query, key):
        return ops.sum(query * key, axis=-1) / self.key_dim**0.5


@_register
class GATAttention(_GraphAttention):
    """Graph attention (GAT): the score is additive, without a hidden layer.

        score(t, s) = LeakyReLU(a_tᵀ W x_t + a_sᵀ W x_s),  value_s = W x_s

    The query adds one number to all scores, so every query ranks the keys
    alike: attention is *static* (Brody et al., section 3).

    Source: Veličković et al. (2018), arXiv:1710.10903, section 2.1.

    Args:
        num_heads: Positive int, H.
        key_dim: Positive int, K features of each head.
        self_loops: Whether every node is its own neighbour too.
        concat: Whether heads lie side by side (H K features); otherwise
            they are averaged (K features), as in a last layer.

    Call arguments:
        x: Float tensor `(N, D)`, the nodes of one graph; several graphs lie
            in one as blocks.
        adjacency: Bool tensor `(N, N)`; row t may attend to column s.
        edges: Int tensor `(edges, 2)` of `(source, target)`, each at most
            once, in place of `adjacency`.
        return_attention_scores: If True, also return the weights: `(H, N,
            N)`, or `(edges, H)` with `edges`. Self-loops are N more edges
            behind those given; a given edge from a node to itself then has
            weight 0, since it would count twice.

    Returns:
        Float tensor `(N, H K)` or `(N, K)`, and if asked the weights. A node
        without neighbours gets zeros.

    Raises:
        ValueError: If a size is not positive, shapes do not match, or not
            exactly one of `adjacency` and `edges` is given.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import GATAttention
        >>> layer, x = GATAttention(num_heads=2, key_dim=3), np.ones((3, 4))
        >>> edges = np.array([[0, 1], [0, 2]])  # from 0 to 1, from 0 to 2
        >>> _, weights = layer(x, edges=edges, return_attention_scores=True)
        >>> np.array(weights)[:, 0].round(2).tolist()  # loops behind the edges
        [0.5, 0.5, 1.0, 0.5, 0.5]
    """

    def build(self, x_shape):
        self.kernel = self._add_kernel(x_shape[-1], "W")
        self.query_kernel = self._add_score_kernel("a_t")
        self.key_kernel = self._add_score_kernel("a_s")

    def project(self, x):
        x = self._heads(x, self.kernel)
        return x, x, x

    def score(self, query, key):
        of_query = ops.sum(query * self.query_kernel, axis=-1)
        of_key = ops.sum(key * self.key_kernel, axis=-1)
        return ops.leaky_relu(of_query + of_key, 0.2)


@_register
class GATv2Attention(_GraphAttention):
    """Graph attention whose score is a perceptron of query and key (GATv2).

        score(t, s) = aᵀ LeakyReLU(W_t x_t + W_s x_s),  value_s = W_s x_s

    Source: Brody et al. (2022), arXiv:2105.14491, section 3.2.

    Args:
        num_heads: Positive int, H.
        key_dim: Positive int, K features of each head.
        self_loops: Whether every node is its own neighbour too.
        concat: Whether heads lie side by side (H K features); otherwise
            they are averaged (K features), as in a last layer.

    Call arguments:
        x: Float tensor `(N, D)`, the nodes of one graph; several graphs lie
            in one as blocks.
        adjacency: Bool tensor `(N, N)`; row t may attend to column s.
        edges: Int tensor `(edges, 2)` of `(source, target)`, each at most
            once, in place of `adjacency`.
        return_attention_scores: If True, also return the weights: `(H, N,
            N)`, or `(edges, H)` with `edges`. Self-loops are N more edges
            behind those given; a given edge from a node to itself then has
            weight 0, since it would count twice.

    Returns:
        Float tensor `(N, H K)` or `(N, K)`, and if asked the weights. A node
        without neighbours gets zeros.

    Raises:
        ValueError: If a size is not positive, shapes do not match, or not
            exactly one of `adjacency` and `edges` is given.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import GATv2Attention
        >>> layer, x = GATv2Attention(num_heads=2, key_dim=3), np.ones((3, 4))
        >>> path = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], bool)
        >>> output, weights = layer(
        ...     x, adjacency=path, return_attention_scores=True
        ... )
        >>> np.array(weights)[0].round(2).tolist()  # with self-loops
        [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]]
    """

    def build(self, x_shape):
        self.query_kernel = self._add_kernel(x_shape[-1], "W_t")
        self.key_kernel = self._add_kernel(x_shape[-1], "W_s")
        self.score_kernel = self._add_score_kernel("a")

    def project(self, x):
        key = self._heads(x, self.key_kernel)
        return self._heads(x, self.query_kernel), key, key

    def score(self, query, key):
        hidden = ops.leaky_relu(query + key, 0.2)
        return ops.sum(hidden * self.score_kernel, axis=-1)
