import _thread
import inspect
import signal
import time
import tracemalloc

from d2l_attention import BahdanauSeq2Seq, masked_softmax, notebook
from d2l_attention.notebook import (
    NotSolvedYet,
    apart,
    checking,
    peak_bytes,
    show_source,
    show_table,
    time_limit,
)
import keras
from nbclient import NotebookClient
import nbformat
import numpy as np
import pytest


def test_docstrings_go_and_every_other_line_stays(capsys):
    show_source(BahdanauSeq2Seq, masked_softmax)
    shown = capsys.readouterr().out
    assert '"""' not in shown and "Source:" not in shown
    assert "class BahdanauSeq2Seq(RecurrentSeq2Seq):" in shown
    assert "ops.where(total == 0.0, 1.0, total)" in shown
    lines = inspect.getsource(masked_softmax).splitlines()
    assert shown.splitlines()[-1] == lines[-1]
    assert "# (B, S, D)" in shown  # comments are kept


def run_for(seconds):
    """In a function, as answers are: where a `while` stands in a `with`, an
    interrupt at its jump back passes by the `with` on Python 3.13.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_a_loop_without_an_end_is_ended_with_a_sentence(handler, request):
    before = signal.signal(signal.SIGINT, handler)  # ignored in the background
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    with pytest.raises(AssertionError, match="end within 0.2 seconds.*loop"):
        with time_limit(0.2):
            run_for(5)
            raise RuntimeError("It was not interrupted.")
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_call_that_is_cut_off_leaves_no_mode_to_the_calls_after_it(
    monkeypatch,
):
    """Keras lets a layer train if the call around it does."""
    name = "_resolve_and_populate_arg"  # after it, a call is open
    original = getattr(keras.Layer, name)

    def resolve(*args):
        original(*args)
        run_for(5)

    dropout, x = keras.layers.Dropout(0.5), np.ones((3, 20), "float32")
    with monkeypatch.context() as patch, pytest.raises(AssertionError):
        patch.setattr(keras.Layer, name, resolve)
        with time_limit(0.2):
            dropout(x, training=True)
    np.testing.assert_array_equal(dropout(x), x)


def test_what_ends_in_time_is_not_interrupted_later():
    with time_limit(0.2):
        pass
    with pytest.raises(ZeroDivisionError), time_limit(0.2):
        1 / 0  # noqa: B018
    run_for(0.5)


def test_a_reader_who_interrupts_is_not_taken_for_the_limit():
    with pytest.raises(KeyboardInterrupt):
        with time_limit(60):
            _thread.interrupt_main()
            run_for(60)


def test_a_kernel_lives_on_after_the_limit():
    loop = (
        "import runpy\n"  # the package need not be imported
        f"names = runpy.run_path({notebook.__file__!r})\n"
        "with names['time_limit'](0.5):\n    while True:\n        pass"
    )
    cells = [nbformat.v4.new_code_cell(code) for code in (loop, "6 * 7")]
    made = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(made, timeout=60, allow_errors=True).execute()
    first, second = made.cells
    [error] = [x for x in first.outputs if x.output_type == "error"]
    assert error.ename == "AssertionError" and "within 0.5" in error.evalue
    assert second.outputs[0].data["text/plain"] == "42"


def test_the_bytes_of_a_call_are_counted_and_its_inputs_are_not():
    million = np.ones(10**6, "int8")
    assert 10**6 <= peak_bytes(np.copy, million) < 1.1e6


def test_a_call_that_fails_leaves_no_bytes_to_the_next_one():
    with pytest.raises(ZeroDivisionError):
        peak_bytes(lambda: np.ones(10**6) / (1 // 0))
    assert not tracemalloc.is_tracing()


CHECK = """
from d2l_attention.notebook import checking

@checking({number})
def check_of_exercise_{number}():
    assert {answer} == 4, "twice two is another number."
"""
LAST = """
from d2l_attention.notebook import show_solved
show_solved()
"""


def test_a_check_ends_in_one_line_and_the_last_cell_says_what_is_solved():
    answers = {1: "2 + 2", 2: "None", 3: "nothing"}
    sources = [CHECK.format(number=n, answer=x) for n, x in answers.items()]
    cells = [nbformat.v4.new_code_cell(x) for x in [*sources, LAST]]
    for cell in cells[1:3]:
        cell.metadata["tags"] = ["raises-exception"]  # as `build` does
    NotebookClient(nbformat.v4.new_notebook(cells=cells)).execute()
    [[right], [wrong], [broken], [last]] = [cell.outputs for cell in cells]
    assert right["text"] == "Exercise 1 is solved.\n"
    # An error, so that nbgrader gives no points, of one line.
    assert wrong["output_type"] == "error" and wrong["traceback"] == [
        "Exercise 2 is not solved yet: twice two is another number."
    ]
    assert broken["ename"] == "NameError" and len(broken["traceback"]) > 1
    assert last["text"] == (
        "Exercise 1: solved\nExercise 2: not yet\nExercise 3: not yet\n"
    )


def test_what_a_check_says_is_in_what_it_raises():
    with pytest.raises(NotSolvedYet, match="Exercise 7 .* yet: f returned no"):

        @checking(7)
        def check_of_exercise_7():
            raise AssertionError("f returned nothing")


def test_a_check_has_the_names_of_python_and_of_its_notebook():
    names = {"sum": max, "all": any, "apart": apart, "mine": 5, "found": []}
    looks = "sum([1, mine]), all([0, 1]), globals()['all']"
    exec(f"@apart\ndef look():\n    found.append(({looks}))", names)
    assert names["found"] == [(6, False, any)] and names["sum"] is max


def test_a_table_shows_its_columns_with_and_without_html():
    table = show_table(
        {"<word>": ["cow", "."], "n": [4096, np.int64(2)], "w": [-1e-9, 0.456]}
    )
    assert repr(table).splitlines() == [
        "<word>      n     w",
        "   cow  4,096  0.00",
        "     .      2  0.46",
    ]
    page = table._repr_html_()
    assert page.count("<tr>") == 3 and "<th>&lt;word&gt;</th>" in page
    assert "<td>4,096</td><td>0.00</td>" in page


def test_columns_of_two_lengths_are_refused():
    with pytest.raises(ValueError, match=r"lengths: {'a': 1, 'b': 2}"):
        show_table({"a": [1], "b": [1, 2]})
