"""The base of the graph attention layers: all but their scores."""

from d2l_attention._checks import check_positive
from d2l_attention._signature import ConstructorSignature
from d2l_attention.attention_layer import output_spec
from d2l_attention.masking import check_mask, masked_softmax
from d2l_attention.variants.edges import edge_softmax, with_self_loops
import keras
from keras import ops


class GraphAttention(keras.Layer):
    """Several heads of attention between neighbours in a graph.

        weights[t, s] = softmax over the neighbours s of score(t, s)
        output[t]     = Σ_s weights[t, s] value[s]

    A subclass implements `project` and `score`, and documents the arguments.

    Args:
        num_heads: Positive int, H.
        key_dim: Positive int, K features of each head.
        self_loops: Whether every node is also its own neighbour.
        concat: Whether the heads lie side by side (H K features) or are
            averaged (K features).

    Raises:
        ValueError: If a size is not positive, shapes do not match, or
            `adjacency` and `edges` are both given or both missing.
    """

    __signature__ = ConstructorSignature()

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

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "self_loops": self.self_loops,
            "concat": self.concat,
        }


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
