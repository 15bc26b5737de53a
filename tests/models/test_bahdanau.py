from contract import to_numpy
from d2l_attention import BahdanauSeq2Seq
from keras import ops
import numpy as np
from test_seq2seq import INPUTS, SOURCE, TARGET, make


def test_weights_come_by_name_with_one_head_and_sum_to_one():
    model = make(BahdanauSeq2Seq)
    _, maps = model(INPUTS, return_attention_scores=True)
    assert list(maps) == ["decoder/attention"]
    weights = to_numpy(maps["decoder/attention"])
    assert weights.shape == (2, 1, 5, 6)
    np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-6)
    assert (weights[0, 0, :, 4:] == 0).all()


def test_a_step_equals_the_equations_in_numpy():
    """Context, then both GRU layers, then the output, in float64."""
    model = make(BahdanauSeq2Seq)
    state = model.start(SOURCE)
    for t in range(2):  # the second step has a state that is not the encoder's
        previous = state
        logits, state = model.step(TARGET[:, t], state)
    h = [to_numpy(x).astype("float64") for x in previous["hidden"]]
    value = to_numpy(previous["memory"]["value"]).astype("float64")
    w_q, w_k, v = (to_numpy(w) for w in model.attention.weights)
    mask = SOURCE != 0
    scores = np.tanh((h[-1] @ w_q)[:, None] + value @ w_k) @ v
    exponentials = np.where(mask, np.exp(scores), 0)
    weights = exponentials / exponentials.sum(-1, keepdims=True)
    np.testing.assert_allclose(to_numpy(state["attention"]), weights, atol=1e-6)
    context = np.einsum("bs,bsd->bd", weights, value)
    embedded = to_numpy(model.target_embedding.embeddings)[TARGET[:, 1]]
    x = np.concatenate([context, embedded], axis=-1)
    for cell, before in zip(model.decoder_cells, h, strict=True):
        x = to_numpy(cell(x.astype("float32"), [before.astype("float32")])[0])
    kernel, bias = model.output_layer.get_weights()
    np.testing.assert_allclose(to_numpy(logits), x @ kernel + bias, atol=1e-5)


def test_row_t_is_decided_before_token_t_is_read():
    """The query is s_{t−1}: the token fed at step t cannot move row t."""
    model = make(BahdanauSeq2Seq)
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


def test_the_context_of_one_source_token_is_its_annotation():
    model = make(BahdanauSeq2Seq)
    memory, _ = model.encode(ops.convert_to_tensor(SOURCE[:, :1]))
    context, _ = model.read(ops.ones((2, model.dim)), memory)
    np.testing.assert_allclose(
        to_numpy(context), to_numpy(memory["value"])[:, 0], atol=1e-6
    )
