"""Pictures as they looked when somebody last looked at them.

    python -m pytest --mpl tests/heatmaps/test_baselines.py

After a change that is meant: `--mpl-generate-path=tests/heatmaps/baseline`,
and look at them.
"""

from d2l_attention.heatmaps import (
    plot_alignment,
    plot_attention,
    plot_attention_grid,
    plot_entropy,
    show_heatmaps,
)
import matplotlib
import numpy as np
import pytest

pytest.importorskip("pytest_mpl")
pytestmark = pytest.mark.ci
matplotlib.use("agg")

WEIGHTS = np.random.default_rng(0).dirichlet(np.full(6, 0.5), (2, 3, 5))
# Letters are left out: their shapes depend on the fonts of the machine.
looks_the_same = pytest.mark.mpl_image_compare(
    baseline_dir="baseline", remove_text=True, style="default", tolerance=3
)


@looks_the_same
def test_panels_under_one_bar():
    return show_heatmaps(WEIGHTS, "keys", "queries", titles=list("abc"))


@looks_the_same
def test_a_causal_mask_is_hatched():
    return plot_attention(WEIGHTS[0, 0], mask=np.tri(5, 6, dtype=bool)).figure


@looks_the_same
def test_keys_from_right_to_left():
    words = ["אחת", "שתיים", "שלוש", "ארבע", "חמש", "שש"]
    return plot_attention(
        WEIGHTS[0, 0], query_tokens=words[:5], key_tokens=words
    ).figure


@looks_the_same
def test_layers_and_heads():
    maps = {"encoder": WEIGHTS[0], "decoder": WEIGHTS[1, :2]}
    return plot_attention_grid(
        maps, query_tokens=list("abcde"), key_tokens=list("uvwxyz")
    )


@looks_the_same
def test_an_alignment_in_frames():
    links = {"sure": {(0, 0), (3, 2)}, "possible": {(4, 2)}}
    words = {"query_tokens": list("abcde"), "key_tokens": list("uvwxyz")}
    return plot_alignment(WEIGHTS[1, 1], **words, **links).figure


@looks_the_same
def test_entropies():
    return plot_entropy({"a": WEIGHTS[0], "b": WEIGHTS[1, :2]}).figure
