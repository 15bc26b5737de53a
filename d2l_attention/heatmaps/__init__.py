"""Attention weights of any Keras model: captured, plotted and measured.

No module here imports a layer of this package.
"""

from d2l_attention.heatmaps.adapters import register_attention_adapter
from d2l_attention.heatmaps.capture import (
    AttentionMaps,
    AttentionRecorder,
    get_attention_weights,
)
from d2l_attention.heatmaps.gradients import (
    get_attention_gradients,
    gradient_rollout,
)
from d2l_attention.heatmaps.grids import (
    animate_attention,
    plot_attention_grid,
)
from d2l_attention.heatmaps.masks import MaskLeak, check_attention_masks
from d2l_attention.heatmaps.notebook_figures import (
    describe_attention,
    display_figure,
)
from d2l_attention.heatmaps.on_images import (
    join_windows,
    plot_attention_on_image,
)
from d2l_attention.heatmaps.palette import PALETTE
from d2l_attention.heatmaps.plots import (
    plot_alignment,
    plot_attention,
    plot_entropy,
    plot_learning_curves,
    show_heatmaps,
)
from d2l_attention.heatmaps.statistics import (
    AttentionSink,
    HeadScore,
    alignment_error_rate,
    alignment_from_attention,
    attention_distance,
    attention_entropy,
    attention_rollout,
    attention_sinks,
    head_scores,
    merge_subwords,
    read_pharaoh,
)
from d2l_attention.heatmaps.viewer import AttentionView, view_attention

__all__ = [
    "AttentionMaps",
    "AttentionRecorder",
    "AttentionSink",
    "AttentionView",
    "HeadScore",
    "MaskLeak",
    "PALETTE",
    "check_attention_masks",
    "get_attention_gradients",
    "get_attention_weights",
    "gradient_rollout",
    "register_attention_adapter",
    "alignment_error_rate",
    "alignment_from_attention",
    "attention_distance",
    "attention_entropy",
    "attention_rollout",
    "attention_sinks",
    "head_scores",
    "merge_subwords",
    "animate_attention",
    "describe_attention",
    "display_figure",
    "join_windows",
    "plot_alignment",
    "plot_attention",
    "plot_attention_grid",
    "plot_attention_on_image",
    "plot_entropy",
    "plot_learning_curves",
    "read_pharaoh",
    "show_heatmaps",
    "view_attention",
]
