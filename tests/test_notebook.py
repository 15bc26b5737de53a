import inspect

from d2l_attention import BahdanauSeq2Seq, masked_softmax
from d2l_attention.notebook import show_source


def test_docstrings_go_and_every_other_line_stays(capsys):
    show_source(BahdanauSeq2Seq, masked_softmax)
    shown = capsys.readouterr().out
    assert '"""' not in shown and "Source:" not in shown
    assert "class BahdanauSeq2Seq(RecurrentSeq2Seq):" in shown
    assert "ops.where(total == 0.0, 1.0, total)" in shown
    lines = inspect.getsource(masked_softmax).splitlines()
    assert shown.splitlines()[-1] == lines[-1]
    assert "# no visible key" in shown  # comments are kept
