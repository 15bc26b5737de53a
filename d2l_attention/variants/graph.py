"""Attention along the edges of a graph.

The nodes are the positions; a node attends to each node from which an edge
leads to it. Edges come as a mask of pairs, or as a list, which needs no
tensor `(N, N)`.
"""

from d2l_attention.variants.graph_base import GraphAttention
import keras
from keras import ops


@keras.saving.register_keras_serializable("d2l_attention")
class GraphDotProductAttention(GraphAttention):
    """Scaled dot-product attention between neighbours.

        score(t, s) = (W_q x_t) · (W_k x_s) / √K,  value_s = W_v x_s

    Source: document 002, section 5 (self-attention for graphs); Vaswani et
    al. (2017), arXiv:1706.03762, for the score.

    Args:
        num_heads: Positive int, H.
        key_dim: Positive int, K features of each head.
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
            behind the given ones; a given edge from a node to itself then
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
        >>> output, weights = layer(
        ...     np.ones((3, 4)), edges=edges, return_attention_scores=True
        ... )
        >>> np.array(output)[0].tolist()  # nothing leads to node 0
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
        >>> np.array(weights).tolist()  # two edges, two heads
        [[1.0, 1.0], [1.0, 1.0]]
    """

    def build(self, x_shape):
        names = ("W_q", "W_k", "W_v")
        self.kernels = [self.add_kernel(x_shape[-1], name) for name in names]

    def project(self, x):
        return [self.to_heads(x, kernel) for kernel in self.kernels]

    def score(self, query, key):
        return ops.sum(query * key, axis=-1) / self.key_dim**0.5


@keras.saving.register_keras_serializable("d2l_attention")
class GATAttention(GraphAttention):
    """Graph attention (GAT): the score is additive, without a hidden layer.

        score(t, s) = LeakyReLU(a_tᵀ W x_t + a_sᵀ W x_s),  value_s = W x_s

    The query adds the same number to all its scores, so every query ranks the
    keys in the same order: the attention is *static* (Brody et al., 2022,
    section 3).

    Source: Veličković et al. (2018), arXiv:1710.10903, section 2.1.

    Args:
        num_heads: Positive int, H.
        key_dim: Positive int, K features of each head.
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
            behind the given ones; a given edge from a node to itself then
            has weight 0, since it would count twice.

    Returns:
        Float tensor `(N, H K)` or `(N, K)`, and if asked the weights. A node
        without neighbours gets zeros.

    Raises:
        ValueError: If a size is not positive, shapes do not match, or
            `adjacency` and `edges` are both given or both missing.

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
        num_heads: Positive int, H.
        key_dim: Positive int, K features of each head.
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
            behind the given ones; a given edge from a node to itself then
            has weight 0, since it would count twice.

    Returns:
        Float tensor `(N, H K)` or `(N, K)`, and if asked the weights. A node
        without neighbours gets zeros.

    Raises:
        ValueError: If a size is not positive, shapes do not match, or
            `adjacency` and `edges` are both given or both missing.

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
