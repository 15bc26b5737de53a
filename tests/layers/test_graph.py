"""Attention along edges: by mask and by list, and no further."""

from contract import draw, to_numpy
from d2l_attention import GATAttention, GATv2Attention, GraphDotProductAttention
from d2l_attention.layers.graph import adjacency_to_edges, edge_softmax
import keras
import networkx as nx
import numpy as np
import pytest

LAYERS = [GraphDotProductAttention, GATAttention, GATv2Attention]
NODES = 9
# A directed ring with chords; node 8 has no edge at all.
ADJACENCY = np.zeros((NODES, NODES), bool)
for t in range(8):
    ADJACENCY[t, [(t - 1) % 8, (t + 3) % 8]] = True
EDGES = adjacency_to_edges(ADJACENCY)
X = draw(NODES, 5)


def make(layer, **options):
    keras.utils.set_random_seed(1)
    layer = layer(num_heads=3, key_dim=4, **options)
    layer.build((NODES, 5))
    return layer


def score_by_hand(layer, t, s, head):
    """One score, in float64, from the equations."""
    w = [to_numpy(x).astype("float64") for x in layer.weights]
    part = slice(4 * head, 4 * head + 4)

    def leaky(x):
        return np.where(x > 0, x, 0.2 * x)

    if isinstance(layer, GraphDotProductAttention):
        return (X[t] @ w[0][:, part]) @ (X[s] @ w[1][:, part]) / 2, (
            X[s] @ w[2][:, part]
        )
    if isinstance(layer, GATAttention):
        value = X[s] @ w[0][:, part]
        own = X[t] @ w[0][:, part]
        return leaky(w[1][head] @ own + w[2][head] @ value), value
    value = X[s] @ w[1][:, part]
    return w[2][head] @ leaky(X[t] @ w[0][:, part] + value), value


@pytest.mark.every_backend
@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize("layer", LAYERS)
def test_it_equals_a_loop_over_neighbours(layer, self_loops):
    layer = make(layer, self_loops=self_loops)
    output, weights = layer(
        X, adjacency=ADJACENCY, return_attention_scores=True
    )
    output = to_numpy(output).reshape(NODES, 3, 4)
    for t, head in np.ndindex(NODES, 3):
        near = ADJACENCY[t] | (self_loops & (np.arange(NODES) == t))
        pairs = [score_by_hand(layer, t, s, head) for s in np.flatnonzero(near)]
        expected, alpha = np.zeros(4), np.zeros(NODES)
        if pairs:
            e = np.exp([score for score, _ in pairs])
            alpha[near] = e / e.sum()
            expected = sum(
                a * value
                for a, (_, value) in zip(e / e.sum(), pairs, strict=True)
            )
        np.testing.assert_allclose(output[t, head], expected, atol=1e-5)
        np.testing.assert_allclose(to_numpy(weights)[head, t], alpha, atol=1e-6)


@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize("layer", LAYERS)
def test_a_list_of_edges_says_the_same_as_a_mask(layer, self_loops):
    layer = make(layer, self_loops=self_loops)
    dense = layer(X, adjacency=ADJACENCY)
    sparse, weights = layer(X, edges=EDGES, return_attention_scores=True)
    np.testing.assert_allclose(to_numpy(sparse), to_numpy(dense), atol=1e-6)
    weights = to_numpy(weights)
    assert weights.shape == (len(EDGES) + self_loops * NODES, 3)
    order = np.random.default_rng(0).permutation(len(EDGES))
    np.testing.assert_allclose(
        to_numpy(layer(X, edges=EDGES[order])), to_numpy(sparse), atol=1e-6
    )


@pytest.mark.parametrize("layer", LAYERS)
def test_a_node_without_neighbours_gets_zeros_or_itself(layer):
    for arguments in ({"adjacency": ADJACENCY}, {"edges": EDGES}):
        alone = to_numpy(make(layer, self_loops=False)(X, **arguments))[8]
        assert (alone == 0).all()
        looped = make(layer)
        _, _, value = looped.project(X)
        own = to_numpy(looped(X, **arguments))[8]
        np.testing.assert_allclose(own, to_numpy(value)[8].ravel(), atol=1e-6)


@pytest.mark.parametrize("way", ["adjacency", "edges"])
@pytest.mark.parametrize("layer", LAYERS)
def test_layers_reach_as_many_hops_as_there_are_layers(layer, way):
    """Bit for bit: what is further away moves nothing."""
    graph = nx.path_graph(NODES)
    mask = nx.to_numpy_array(graph) > 0
    arguments = {way: mask if way == "adjacency" else adjacency_to_edges(mask)}
    first, *rest = (layer(1, 4, concat=False) for _ in range(3))
    changed = X.copy()
    changed[0] += 1
    x, y = X, changed
    for depth, one in enumerate([first, *rest], 1):
        x, y = one(x, **arguments), one(y, **arguments)
        moved = (to_numpy(x) != to_numpy(y)).any(-1)
        np.testing.assert_array_equal(moved, np.arange(NODES) <= depth)


@pytest.mark.parametrize("layer", LAYERS)
def test_renaming_the_nodes_renames_the_outputs(layer):
    layer = make(layer)
    order = np.random.default_rng(0).permutation(NODES)
    there = to_numpy(layer(X, adjacency=ADJACENCY))[order]
    renamed = layer(X[order], adjacency=ADJACENCY[order][:, order])
    np.testing.assert_allclose(to_numpy(renamed), there, atol=1e-6)


def test_softmax_over_edges_does_not_overflow():
    scores = np.array([[1000.0], [999.0], [-1000.0], [3.0]], "float32")
    weights = to_numpy(edge_softmax(scores, np.array([0, 0, 0, 2]), 3))
    e = np.exp([0.0, -1.0])
    np.testing.assert_allclose(weights[:, 0], [*(e / e.sum()), 0, 1], atol=1e-6)


def test_gat_ranks_keys_alike_for_every_query_and_gatv2_does_not():
    mask = np.ones((NODES, NODES), bool)

    def rankings(layer):
        _, weights = make(layer)(
            X, adjacency=mask, return_attention_scores=True
        )
        return {tuple(row.argsort()) for row in to_numpy(weights)[0]}

    assert len(rankings(GATAttention)) == 1
    assert len(rankings(GATv2Attention)) > 1


@pytest.mark.every_backend
@pytest.mark.parametrize("layer", LAYERS)
def test_it_trains_and_is_saved(layer, tmp_path):
    x = keras.Input((5,), name="x")
    edges = keras.Input((2,), dtype="int32", name="edges")
    hidden = layer(2, 4, name="graph")(x, edges=edges)
    assert hidden.shape == (None, 8)
    model = keras.Model({"x": x, "edges": edges}, hidden)
    inputs = {"x": X, "edges": EDGES}
    model.compile("adam", "mse")
    before = model.get_weights()
    model.train_on_batch(inputs, np.ones((NODES, 8), "float32"))
    assert all(
        np.abs(a - b).max() > 0
        for a, b in zip(before, model.get_weights(), strict=True)
    )
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(
        to_numpy(model(inputs)), to_numpy(again(inputs))
    )


def test_what_makes_no_sense_is_refused():
    layer = make(GATAttention)
    for arguments in ({}, {"adjacency": ADJACENCY, "edges": EDGES}):
        with pytest.raises(ValueError, match="adjacency.*edges"):
            layer(X, **arguments)
    with pytest.raises(ValueError, match="key_dim=0"):
        GATAttention(2, 0)
    with pytest.raises(ValueError, match="num_heads=0"):
        GATAttention(0, 2)
    with pytest.raises(ValueError, match="must be boolean.*float32"):
        layer(X, adjacency=ADJACENCY.astype("float32"))
    with pytest.raises(ValueError, match=r"\(5, 9\)"):
        layer(X, adjacency=ADJACENCY[:5])
    with pytest.raises(ValueError, match=r"\(edges, 2\).*\(2, 3\)"):
        layer(X, edges=np.zeros((2, 3), "int32"))
    with pytest.raises(ValueError, match=r"\(N, D\).*\(1, 9, 5\)"):
        layer(X[None], adjacency=ADJACENCY)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_node_that_lists_itself_counts_once(layer):
    """By mask a self-edge and a self-loop are one; by list they were two."""
    adjacency = ADJACENCY | np.eye(NODES, dtype=bool)
    edges = adjacency_to_edges(adjacency)
    for self_loops in (True, False):
        one = make(layer, self_loops=self_loops)
        expected = to_numpy(one(X, adjacency=adjacency))
        found, weights = one(X, edges=edges, return_attention_scores=True)
        np.testing.assert_allclose(to_numpy(found), expected, atol=1e-6)
        itself = edges[:, 0] == edges[:, 1]
        listed = to_numpy(weights)[: len(edges)][itself]
        assert (listed == 0).all() == self_loops


@pytest.mark.every_backend
def test_edges_of_a_tensor_are_those_of_its_array():
    adjacency = np.array([[0, 1, 0], [0, 0, 0], [0, 0, 1]], "bool")
    expected = [[1, 0], [2, 2]]
    for array in (adjacency, keras.ops.convert_to_tensor(adjacency)):
        assert adjacency_to_edges(array).tolist() == expected
