"""The losses of a training, as lines."""

from d2l_attention.heatmaps import plot_learning_curves
from d2l_attention.heatmaps.display import to_png
import matplotlib.pyplot as plt
import pytest

CURVES = {
    "training": ([1, 2, 3, 4], [3.0, 2.0, 1.5, 1.2]),
    "validation": ([2, 4], [2.41, 2.56]),
}
RATE = [1, 2, 3, 4], [0.001, 0.002, 0.001, 0.0]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_each_curve_is_drawn_as_it_is_and_told_apart():
    ax = plot_learning_curves(CURVES)
    assert len(ax.figure.axes) == 1
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("step", "loss")
    drawn = {line.get_label(): line for line in ax.lines}
    assert drawn.keys() == CURVES.keys()
    for name, (steps, values) in CURVES.items():
        assert list(drawn[name].get_xdata()) == steps
        assert list(drawn[name].get_ydata()) == values
    looks = {(x.get_color(), x.get_linestyle()) for x in ax.lines}
    assert len(looks) == 2
    named = [text.get_text() for text in ax.get_legend().get_texts()]
    assert named == [*CURVES]


def test_the_lowest_validation_loss_is_written_at_its_place():
    (note,) = plot_learning_curves(CURVES).texts
    assert note.get_text() == "2.41" and note.xy == (2, 2.41)


def test_the_learning_rate_has_a_panel_of_its_own():
    ax = plot_learning_curves(CURVES, RATE, xlabel="epoch")
    above, below = ax.figure.axes
    assert ax is above and not above.get_xlabel()
    assert below.get_xlabel() == "epoch"
    assert list(below.lines[0].get_ydata()) == RATE[1]
    assert to_png(ax.figure).startswith(b"\x89PNG")


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="'training': 2 steps, 1 values"):
        plot_learning_curves({"training": ([1, 2], [3.0])})
    with pytest.raises(ValueError, match="1 to 4 curves. Received: 0"):
        plot_learning_curves({})
    with pytest.raises(ValueError, match="Received: 5"):
        plot_learning_curves({str(i): ([], []) for i in range(5)})


def test_a_loss_that_is_no_number_leaves_a_gap():
    nan = float("nan")
    curves = {"a": ([1], [nan]), "b": ([1, 2], [nan, 2.0]), "c": ([1], [nan])}
    notes = [text.get_text() for text in plot_learning_curves(curves).texts]
    assert notes == ["2.00"]
