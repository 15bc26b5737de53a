"""RNNsearch against its equations, and against Keras's gated unit."""

from contract import draw, to_numpy
from d2l_attention import RNNSearch
from d2l_attention.models.recurrent import GatedUnit, gated_step
import keras
from keras import ops
import numpy as np
import pytest
from test_seq2seq import INPUTS, SOURCE, TARGET, make

N, M, ALIGNMENT, MAXOUT = 8, 5, 7, 3
SIZES = {"embedding_dim": M, "alignment_dim": ALIGNMENT, "maxout_dim": MAXOUT}


def test_every_matrix_of_the_document_has_its_name_and_shape():
    """K_x = 11, K_y = 13, n, m, n′ and l all differ."""
    assert RNNSearch(11, 13, dim=N).maxout_dim == N // 2
    found = make(RNNSearch, **SIZES).matrices()
    gated = {"W": (N, M), "U": (N, N)}
    expected = {
        "Ē": (M, 11),
        "E": (M, 13),
        "W_s": (N, N),
        "v_a": (ALIGNMENT,),
        "W_a": (ALIGNMENT, N),
        "U_a": (ALIGNMENT, 2 * N),
        "W_o": (13, MAXOUT),
        "U_o": (2 * MAXOUT, N),
        "V_o": (2 * MAXOUT, M),
        "C_o": (2 * MAXOUT, 2 * N),
    }
    for gate in ("", "_z", "_r"):
        expected[f"C{gate}"] = (N, 2 * N)
        for name, shape in gated.items():
            for arrow in ("", "→", "←"):
                expected[f"{arrow}{name}{gate}"] = shape
    assert {name: tuple(x.shape) for name, x in found.items()} == expected


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def by_hand(model, source, target):
    """Logits and weights of one sentence, in float64, from the equations."""
    a = {k: to_numpy(x).astype("float64") for k, x in model.matrices().items()}
    bias = to_numpy(model.output_layer.bias)
    x = [a["Ē"][:, token] for token in source if token]

    def unit(inputs, s, arrow=""):
        def gate(name, s):
            total = a[f"{arrow}U{name}"] @ s
            for letter, value in inputs.items():
                total = total + a[f"{arrow}{letter}{name}"] @ value
            return total

        z, r = sigmoid(gate("_z", s)), sigmoid(gate("_r", s))
        return (1 - z) * s + z * np.tanh(gate("", r * s))

    ahead, back, s = [], [], np.zeros(N)
    for vector in x:
        s = unit({"W": vector}, s, "→")
        ahead.append(s)
    s = np.zeros(N)
    for vector in reversed(x):
        s = unit({"W": vector}, s, "←")
        back.insert(0, s)
    h = [np.concatenate(pair) for pair in zip(ahead, back, strict=True)]
    s = np.tanh(a["W_s"] @ back[0])
    all_logits, all_weights = [], []
    for token in target:
        e = [a["v_a"] @ np.tanh(a["W_a"] @ s + a["U_a"] @ h_j) for h_j in h]
        weights = np.exp(e) / np.exp(e).sum()
        c = sum(w * h_j for w, h_j in zip(weights, h, strict=True))
        y = a["E"][:, token]
        t = a["U_o"] @ s + a["V_o"] @ y + a["C_o"] @ c
        t = [max(t[2 * k], t[2 * k + 1]) for k in range(MAXOUT)]
        all_logits.append(a["W_o"] @ t + bias)
        all_weights.append(weights)
        s = unit({"W": y, "C": c}, s)
    return np.array(all_logits), np.array(all_weights)


@pytest.mark.every_backend
@pytest.mark.parametrize("sentence", [0, 1])
def test_it_equals_a_loop_written_from_the_equations(sentence):
    """Sentence 0 has two tokens of padding: the backward pass skips them."""
    model = make(RNNSearch, **SIZES)
    model.output_layer.bias.assign(draw(13))
    logits, maps = model(INPUTS, return_attention_scores=True)
    expected, weights = by_hand(model, SOURCE[sentence], TARGET[sentence])
    length = weights.shape[1]
    found = to_numpy(maps["decoder/attention"])[sentence, 0]
    np.testing.assert_allclose(found[:, :length], weights, atol=1e-6)
    assert (found[:, length:] == 0).all()
    np.testing.assert_allclose(to_numpy(logits)[sentence], expected, atol=2e-6)


def test_a_gated_step_is_that_of_keras_with_its_z_turned_round():
    weights = GatedUnit(N, {"W": M})
    weights.build()
    x, s = draw(2, M), draw(2, N)
    ours = gated_step(
        ops.matmul(x, weights.joined("W")), s, weights.joined("U")
    )
    cell = keras.layers.GRUCell(N, reset_after=False, use_bias=False)
    cell.build((None, M))
    for variable, letter in ((cell.kernel, "W"), (cell.recurrent_kernel, "U")):
        matrix = to_numpy(weights.joined(letter)).copy()
        matrix[:, :N] *= -1  # Keras's z is the share of the old state
        variable.assign(matrix)
    np.testing.assert_allclose(
        to_numpy(ours), to_numpy(cell(x, [s])[0]), atol=1e-6
    )


def test_the_alignment_asks_with_the_state_before_the_token():
    """The query is s_{i−1}: the token fed at step t cannot move row t."""
    model = make(RNNSearch)
    changed = TARGET.copy()
    changed[:, 2] = 12
    rows, other = (
        to_numpy(
            model(
                {"source": SOURCE, "target": target},
                return_attention_scores=True,
            )[1]["decoder/attention"]
        )
        for target in (TARGET, changed)
    )
    np.testing.assert_array_equal(rows[:, :, :3], other[:, :, :3])
    assert (np.abs(rows - other)[:, :, 3].max(-1) > 0).all()


def test_sizes_that_the_paper_has_not_are_refused():
    with pytest.raises(ValueError, match="one layer.*num_layers=2"):
        RNNSearch(11, 13, 8, 2)
    for name in SIZES:
        with pytest.raises(ValueError, match=f"`{name}`.*0"):
            RNNSearch(11, 13, 8, **{name: 0})
