"""Weights of keras-hub's backbones for pictures, sounds and several parts."""

from importlib import import_module

from d2l_attention.heatmaps import get_attention_weights
import keras
from keras import ops, tree
import numpy as np
import pytest
from recorded_softmaxes import (
    IDS,
    MARKS,
    MASK,
    PAIRS,
    TOKENS,
    sides,
    softmaxes_of,
)

models = pytest.importorskip("keras_hub").models

pytestmark = MARKS


def draw(*shape):
    return np.random.default_rng(0).random(shape, "float32")


IMAGES = draw(2, 32, 32, 3)
SMALL = IMAGES[:, :16, :16]
ONE = {"num_layers": 1, "num_heads": 4, "hidden_dim": 8, "intermediate_dim": 16}
GROUPS = {
    "vocabulary_size": 11,
    "num_layers": 2,
    "num_query_heads": 4,
    "num_key_value_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 16,
}


def part(path, kind, **options):
    """A part of a backbone that keras-hub does not export."""
    module = import_module(f"keras_hub.src.models.{path}")
    return getattr(module, kind)(**options)


def image_and_text(name, **options):
    image = getattr(models, f"{name}VisionEncoder")(
        patch_size=16, image_shape=(32, 32, 3), **ONE
    )
    text = getattr(models, f"{name}TextEncoder")(
        vocabulary_size=11, embedding_dim=8, max_sequence_length=4, **ONE
    )
    model = getattr(models, f"{name}Backbone")(image, text, **options)
    return model, {"images": IMAGES, "token_ids": IDS}


def moonshine():
    model = models.MoonshineBackbone(
        vocabulary_size=11,
        filter_dim=16,
        hidden_dim=16,
        intermediate_dim=16,
        **sides(num_layers=1, num_heads=4),
    )
    sound = {
        "encoder_input_values": draw(2, 1500, 1),
        "encoder_padding_mask": np.ones((2, 1500), bool),
    }
    text = {"decoder_token_ids": IDS, "decoder_padding_mask": MASK}
    return model, sound | text


def paligemma():
    model = models.PaliGemmaBackbone(
        **GROUPS,
        image_size=16,
        head_dim=4,
        vit_patch_size=8,
        vit_num_heads=4,
        vit_hidden_dim=8,
        vit_num_layers=1,
    )
    return model, TOKENS | {"images": SMALL, "response_mask": MASK}


def qwen3_5(kind, **options):
    eyes = part(
        "qwen3_5.qwen3_5_vision_encoder",
        "Qwen3_5VisionEncoder",
        depth=1,
        hidden_size=8,
        num_heads=2,
        intermediate_size=16,
        patch_size=4,
        temporal_patch_size=1,
        spatial_merge_size=2,
        out_hidden_size=16,
        num_position_embeddings=16,
    )
    model = getattr(models, kind)(
        **GROUPS
        | {"hidden_dim": 16, "head_dim": 8}
        | {
            f"linear_{name}": size
            for name, size in {
                "num_key_heads": 2,
                "num_value_heads": 4,
                "key_head_dim": 4,
                "value_head_dim": 4,
            }.items()
        }
        | options,
        layer_types=["linear_attention", "full_attention"],
        vision_encoder=eyes,
    )
    return model, {
        "token_ids": IDS[:1],
        "padding_mask": MASK[:1],
        "pixel_values": draw(1, 24, 1, 4, 4, 3),
        "image_grid_thw": np.array([[[1, 4, 6]]], "int32"),
        "vision_indices": np.array([[0, 1, 2, 3, 3, 3]], "int32"),
    }


def edrec():
    model = models.EdRecBackbone(
        vocab_size=11,
        num_layers_enc=1,
        num_layers_dec=1,
        num_heads=4,
        hidden_dim=8,
        intermediate_dim=16,
    )
    return model, PAIRS


def t5gemma2():
    model = models.T5Gemma2Backbone(
        vocabulary_size=11,
        sliding_window=8,
        **sides(
            hidden_dim=16,
            intermediate_dim=16,
            num_layers=1,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=4,
            layer_types=["full_attention"],
        ),
    )
    return model, PAIRS


def vitdet():
    model = models.ViTDetBackbone(
        hidden_size=8,
        num_layers=2,
        intermediate_dim=16,
        num_heads=4,
        global_attention_layer_indices=[1],
        patch_size=8,
        num_output_channels=8,
        window_size=2,
        image_shape=(32, 32, 3),
    )
    return model, IMAGES


def sam():
    prompts = part(
        "sam.sam_prompt_encoder",
        "SAMPromptEncoder",
        hidden_size=8,
        image_embedding_size=(4, 4),
        input_image_size=(32, 32),
        mask_in_channels=4,
    )
    decoder = part(
        "sam.sam_mask_decoder",
        "SAMMaskDecoder",
        num_layers=1,
        hidden_size=8,
        intermediate_dim=16,
        num_heads=4,
        embedding_dim=8,
        num_multimask_outputs=3,
        iou_head_depth=2,
        iou_head_hidden_dim=8,
    )
    backbone = models.SAMBackbone(vitdet()[0], prompts, decoder)
    return models.SAMImageSegmenter(backbone), {
        "images": IMAGES,
        "points": draw(2, 1, 2),
        "labels": np.ones((2, 1), "float32"),
        "boxes": draw(2, 1, 2, 2),
        "masks": np.zeros((2, 0, 16, 16, 1), "float32"),
    }


def sam3():
    parts = {
        "vision_encoder": {
            "image_shape": (28, 28, 3),
            "patch_size": 7,
            "num_layers": 2,
            "fpn_hidden_dim": 8,
            "fpn_scale_factors": [4.0, 2.0, 1.0, 0.5],
            "pretrain_image_shape": (14, 14, 3),
            "window_size": 2,
            "global_attn_indexes": [1],
        },
        "text_encoder": {"vocabulary_size": 11, "embedding_dim": 8},
        "geometry_encoder": {"roi_size": 3},
        "detr_encoder": {},
        "detr_decoder": {
            "image_shape": (28, 28, 3),
            "patch_size": 7,
            "num_queries": 5,
        },
    }
    made = [
        part(
            f"sam3.sam3_{name}",
            "SAM3" + name.title().replace("_", ""),
            **ONE | {"num_heads": 2} | options,
        )
        for name, options in parts.items()
    ]
    decoder = part(
        "sam3.sam3_mask_decoder",
        "SAM3MaskDecoder",
        num_upsampling_stages=3,
        hidden_dim=8,
        num_heads=2,
    )
    ids = np.tile(IDS, 8)  # as many as the text encoder has positions
    return models.SAM3PromptableConceptBackbone(*made, decoder), {
        "pixel_values": IMAGES[:, :28, :28],
        "token_ids": ids,
        "padding_mask": np.ones_like(ids, bool),
        "boxes": draw(2, 1, 5),
        "box_labels": np.ones((2, 1), "int32"),
    }


def d_fine():
    stages = ["stage1", "stage2"]
    eyes = models.HGNetV2Backbone(
        stem_channels=[3, 4, 4],
        stackwise_stage_filters=[[4, 4, 8, 1, 1, 3], [8, 4, 8, 1, 1, 3]],
        apply_downsample=[False, True],
        use_lightweight_conv_block=[False, False],
        depths=[1, 1],
        hidden_sizes=[8, 8],
        embedding_size=4,
        use_learnable_affine_block=True,
        hidden_act="relu",
        image_shape=(None, None, 3),
        out_features=stages,
    )
    model = models.DFineBackbone(
        eyes,
        decoder_in_channels=[8, 8],
        encoder_hidden_dim=8,
        num_labels=3,
        num_denoising=0,
        learn_initial_query=False,
        num_queries=7,
        anchor_image_size=(32, 32),
        feat_strides=[4, 8],
        num_feature_levels=2,
        hidden_dim=8,
        encoder_in_channels=[8, 8],
        encode_proj_layers=[1],
        num_attention_heads=4,
        encoder_ffn_dim=16,
        num_encoder_layers=1,
        hidden_expansion=0.5,
        depth_multiplier=0.5,
        eval_idx=-1,
        num_decoder_layers=1,
        decoder_attention_heads=4,
        decoder_ffn_dim=16,
        decoder_n_points=[3, 3],
        lqe_hidden_dim=8,
        num_lqe_layers=2,
        out_features=stages,
    )
    return model, IMAGES


def depth_anything():
    eyes = models.DINOV2Backbone(
        patch_size=7,
        num_layers=2,
        hidden_dim=8,
        num_heads=4,
        intermediate_dim=16,
        image_shape=(28, 28, 3),
        position_embedding_shape=(28, 28, 3),
        apply_layernorm=True,
    )
    model = models.DepthAnythingBackbone(
        eyes,
        reassemble_factors=[2, 1],
        neck_hidden_dims=[8, 8],
        fusion_hidden_dim=8,
        head_hidden_dim=8,
        head_in_index=-1,
        feature_keys=["stage1", "stage2"],
    )
    return model, IMAGES[:, :28, :28]


def parseq():
    eyes = models.ViTBackbone(
        image_shape=(32, 32, 3),
        patch_size=(8, 16),
        num_layers=1,
        num_heads=4,
        hidden_dim=8,
        mlp_dim=16,
        use_class_token=False,
    )
    model = models.PARSeqBackbone(
        eyes,
        vocabulary_size=11,
        max_label_length=4,
        decoder_hidden_dim=8,
        num_decoder_layers=1,
        num_decoder_heads=4,
        decoder_mlp_dim=16,
    )
    return model, TOKENS | {"images": IMAGES}


def video_prism():
    layers = ("spatial", "temporal", "auxiliary", "text")
    model = models.VideoPrismBackbone(
        num_frames=3,
        patch_size=16,
        hidden_dim=8,
        intermediate_dim=16,
        num_heads=4,
        vocabulary_size=11,
        attention_logit_soft_cap=50.0,
        image_shape=(32, 32, 3),
        **{f"num_{name}_layers": 1 for name in layers},
    )
    return model, TOKENS | {"pixel_values": draw(2, 3, 32, 32, 3)}


def mobilenet_v5():
    """One block of convolutions, one of attention: many queries, few keys."""
    stages = {
        "block_types": ["er", "mqa"],
        "num_blocks": [1, 1],
        "num_filters": [8, 8],
        "strides": [2, 1],
        "act_layers": ["relu", "relu"],
        "exp_ratios": [1.0, 1.0],
        "se_ratios": [0.0, 0.0],
        "dw_kernel_sizes": [0, 3],
        "dw_start_kernel_sizes": [0, 0],
        "dw_end_kernel_sizes": [0, 0],
        "exp_kernel_sizes": [3, 0],
        "pw_kernel_sizes": [1, 0],
        "num_heads": [0, 4],
        "key_dims": [0, 4],
        "value_dims": [0, 4],
        "kv_strides": [0, 2],
        "use_cpe": [False, False],
    }
    model = models.MobileNetV5Backbone(
        **{
            f"stackwise_{name}": values
            if name == "num_blocks"
            else [[value] for value in values]
            for name, values in stages.items()
        },
        image_shape=(32, 32, 3),
        stem_size=8,
        use_msfa=False,
    )
    return model, IMAGES


def stable_diffusion_3():
    eyes = part(
        "vae.vae_backbone",
        "VAEBackbone",
        encoder_num_filters=[32] * 4,
        encoder_num_blocks=[1] * 4,
        decoder_num_filters=[32] * 4,
        decoder_num_blocks=[1] * 4,
        sampler_method="mode",
        name="vae",
    )
    clips = [
        models.CLIPTextEncoder(
            vocabulary_size=11,
            embedding_dim=8,
            intermediate_output_index=-2,
            name=name,
            **ONE | {"num_layers": 2},
        )
        for name in ("clip_l", "clip_g")
    ]
    model = models.StableDiffusion3Backbone(
        2,
        16,
        2,
        4,
        8,
        None,
        (0,),
        eyes,
        *clips,
        image_shape=(32, 32, 3),
    )
    sentences = {
        f"clip_{kind}_{name}token_ids": IDS
        for kind in "lg"
        for name in ("", "negative_")
    }
    return model, sentences | {
        "images": IMAGES,
        "latents": draw(2, 4, 4, 16),
        "num_steps": np.ones(2, "int32"),
        "guidance_scale": np.ones(2, "float32"),
    }


def flux():
    model = models.FluxBackbone(
        input_channels=8,
        hidden_size=32,
        mlp_ratio=2.0,
        num_heads=4,
        depth=1,
        depth_single_blocks=1,
        axes_dim=[4, 2, 2],
        theta=10000,
        use_bias=True,
        guidance_embed=True,
        image_shape=(6, 8),
        text_shape=(5, 8),
        image_ids_shape=(6, 3),
        text_ids_shape=(5, 3),
        y_shape=(8,),
    )
    return model, {
        "image": draw(2, 6, 8),
        "image_ids": draw(2, 6, 3),
        "text": draw(2, 5, 8),
        "text_ids": draw(2, 5, 3),
        "y": draw(2, 8),
        "timesteps": draw(2),
        "guidance": draw(2),
    }


def blip2():
    rest = {"dropout": 0.0, "num_query_tokens": 3}
    eyes = models.BLIP2VisionEncoder(
        image_size=16,
        patch_size=8,
        use_patch_bias=True,
        use_class_token=True,
        use_mha_bias=True,
        use_mlp_bias=True,
        dropout_rate=0.0,
        layer_norm_epsilon=1e-6,
        initializer_range=0.02,
        **ONE,
    )
    q_former = part(
        "blip2.blip2_qformer",
        "BLIP2QFormer",
        vision_dim=8,
        cross_attention_frequency=1,
        layer_norm_epsilon=1e-6,
        **ONE,
        **rest,
    )
    language = part(
        "blip2.blip2_custom_opt",
        "BLIP2CustomOPT",
        vocabulary_size=11,
        qformer_hidden_dim=8,
        max_sequence_length=8,
        **ONE,
        **rest,
    )
    model = models.BLIP2Backbone(eyes, q_former, language)
    return model, TOKENS | {"images": SMALL}


def gemma3n():
    ears = part(
        "gemma3n.gemma3n_audio_encoder",
        "Gemma3nAudioEncoder",
        hidden_size=8,
        input_feat_size=8,
        sscp_conv_channel_size=[4, 8],
        sscp_conv_kernel_size=[(3, 3), (3, 3)],
        sscp_conv_stride_size=[(2, 2), (2, 2)],
        sscp_conv_group_norm_eps=1e-5,
        num_hidden_layers=1,
        rms_norm_eps=1e-6,
        gradient_clipping=1.0,
        residual_weight=0.5,
        num_attention_heads=2,
        attention_chunk_size=4,
        num_attention_context_right=1,
        num_attention_context_left=3,
        attention_logit_cap=50.0,
        conv_kernel_size=3,
        reduction_factor=1,
    )
    model = models.Gemma3nBackbone(
        text_vocab_size=11,
        text_hidden_size=8,
        num_hidden_layers=2,
        pad_token_id=0,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=4,
        intermediate_size=[16, 16],
        hidden_activation="gelu_approximate",
        layer_types=["sliding_attention", "full_attention"],
        sliding_window=4,
        rope_theta=10000.0,
        max_position_embeddings=16,
        vocab_size_per_layer_input=11,
        hidden_size_per_layer_input=2,
        altup_num_inputs=2,
        laurel_rank=1,
        vision_encoder_config=mobilenet_v5()[0].get_config(),
        vision_hidden_size=8,
        audio_encoder_config=ears.get_config(),
        audio_hidden_size=8,
    )
    return model, {
        "token_ids": IDS,
        "padding_mask": MASK,
        "images": IMAGES[:, None],
        "input_features": draw(2, 1, 28, 8),
        "input_features_mask": np.zeros((2, 1, 28), bool),
    }


def gemma4():
    eyes = models.Gemma4VisionEncoder(
        image_size=16,
        patch_size=4,
        pool_size=2,
        head_dim=4,
        num_key_value_heads=1,
        output_dim=8,
        **ONE | {"num_heads": 2},
    )
    ears = models.Gemma4AudioEncoder(
        input_feat_size=8,
        hidden_size=8,
        num_heads=2,
        num_layers=1,
        chunk_size=4,
        context_left=3,
        context_right=0,
        sscp_conv_channels=(4, 2),
        sscp_kernel_sizes=((3, 3), (3, 3)),
        sscp_stride_sizes=((2, 2), (2, 2)),
        output_proj_dims=None,
        output_dim=8,
    )
    model = models.Gemma4Backbone(
        **GROUPS | {"head_dim": 4, "image_size": 16},
        use_sliding_window_attention=True,
        sliding_window_size=16,
        vision_encoder=eyes,
        audio_encoder=ears,
        num_audio_tokens_per_clip=7,
    )
    ids = np.tile(IDS, 3)
    places = np.stack(np.meshgrid(range(4), range(4)), -1).reshape(16, 2)
    return model, {
        "token_ids": ids,
        "padding_mask": np.ones_like(ids),
        "position_ids": np.tile(np.arange(12, dtype="int32"), (2, 1)),
        "pixel_values": draw(2, 1, 16, 48),
        "pixel_position_ids": np.tile(places.astype("int32"), (2, 1, 1, 1)),
        "vision_mask": np.tile([0] * 4 + [1] * 4 + [0] * 4, (2, 1)),
        "vision_indices": np.tile(np.arange(4, 8, dtype="int32"), (2, 1)),
        "audio_mel": draw(2, 1, 28, 8),
        "audio_mel_mask": np.ones((2, 1, 28), "int32"),
        "audio_indices": np.zeros((2, 7), "int32"),
        "audio_mask": np.zeros((2, 12), "int32"),
    }


def segformer():
    eyes = models.MiTBackbone(
        layerwise_depths=[1, 1],
        num_layers=2,
        layerwise_num_heads=[4, 4],
        layerwise_sr_ratios=[2, 1],
        max_drop_path_rate=0.0,
        layerwise_patch_sizes=[7, 3],
        layerwise_strides=[4, 2],
        image_shape=(32, 32, 3),
        hidden_dims=[8, 16],
    )
    return models.SegFormerBackbone(eyes, projection_filters=8), IMAGES


WEIGHTLESS = "forms no weights"
# Its keys are mixtures of neighbours, made by itself: no position is a column.
MIXED = "could not be followed"
SQUARE = (2, 4, 4, 4)
# What makes the model and its inputs; the shapes of its maps; what is skipped,
# and why; how many softmaxes with heads give no map.
BACKBONES = {
    "CLIP": (
        lambda: image_and_text("CLIP", projection_dim=6),
        [SQUARE, (2, 4, 5, 5)],
    ),
    "SigLIP": (
        lambda: image_and_text("SigLIP"),
        [SQUARE, (2, 4, 1, 4), SQUARE],
    ),
    "MetaCLIP2": (
        lambda: image_and_text("MetaCLIP2", projection_dim=6),
        [(2, 4, 5, 5), SQUARE],
    ),
    "Moonshine": (moonshine, [(2, 4, 2, 2), SQUARE, (2, 4, 4, 2)]),
    "PaliGemma": (paligemma, [SQUARE, (2, 4, 8, 8), (2, 4, 8, 8)]),
    "Qwen3_5": (
        lambda: qwen3_5("Qwen3_5Backbone"),
        [(1, 2, 24, 24), (1, 4, 4, 4)],
        {"transformer_layer_0/linear_attn": WEIGHTLESS},
    ),
    "Qwen3_5Moe": (
        lambda: qwen3_5(
            "Qwen3_5MoeBackbone",
            moe_intermediate_dim=8,
            shared_expert_intermediate_size=8,
            num_experts=2,
            top_k=1,
        ),
        [(1, 2, 24, 24), (1, 4, 4, 4)],
        {"transformer_layer_0/linear_attn": WEIGHTLESS},
    ),
    "EdRec": (edrec, [SQUARE, SQUARE, SQUARE]),
    "T5Gemma2": (t5gemma2, [SQUARE, (2, 4, 4, 8)]),  # both in one softmax
    "ViTDet": (vitdet, [(8, 4, 4, 4), (2, 4, 16, 16)]),  # 4 windows each
    "SAM": (
        sam,
        [
            (8, 4, 4, 4),
            (2, 4, 16, 16),
            (2, 4, 8, 8),
            (2, 4, 8, 16),
            (2, 4, 16, 8),
            (2, 4, 8, 16),
        ],
    ),
    "SAM3": (
        sam3,
        [
            (8, 2, 4, 4),
            (2, 2, 16, 16),
            (2, 2, 32, 32),
            (2, 2, 2, 2),
            (2, 2, 2, 16),
            (2, 2, 16, 16),
            (2, 2, 16, 34),
            (2, 2, 6, 6),
            (2, 2, 6, 34),
            (2, 2, 6, 16),
            (2, 2, 16, 34),
        ],
    ),
    "DFine": (
        d_fine,
        [(2, 4, 16, 16), (2, 4, 7, 7)],
        {"decoder/decoder_layer_0/encoder_attn": WEIGHTLESS},
        2,  # of sampled points; of the distances of a box's sides
    ),
    "DepthAnything": (depth_anything, [(2, 4, 17, 17)] * 2),
    "PARSeq": (parseq, [(2, 4, 8, 8), SQUARE, (2, 4, 4, 8)]),
    "VideoPrism": (
        video_prism,
        [
            (6, 4, 4, 4),  # in each of 3 frames
            (8, 4, 3, 3),  # in each of 4 places
            (2, 4, 12, 12),
            (2, 4, 5, 5),
            (2, 4, 1, 12),
        ],
    ),
    "StableDiffusion3": (
        stable_diffusion_3,
        [SQUARE] * 8
        # with and without the prompt: of its 81 tokens and 4 patches
        + [(4, 4, 85, 85), (4, 4, 4, 4), (4, 4, 85, 85)]
        + [(2, 1, 16, 16)] * 2,
    ),
    "Flux": (flux, [(2, 4, 11, 11)] * 2),
    "BLIP2": (blip2, [(2, 4, 5, 5), (2, 4, 3, 3), (2, 4, 3, 5), (2, 4, 7, 7)]),
    "Gemma3n": (
        gemma3n,
        # Two blocks of four queries, each with seven keys of its own.
        [(6, 2, 4, 7), SQUARE, SQUARE],
        {
            "mobile_net_v5_backbone_1/mobile_attention_1/attn": MIXED,
        },
        1,
    ),
    "Gemma4": (
        gemma4,
        [(2, 2, 16, 16), (4, 2, 4, 6), (2, 4, 12, 12), (2, 4, 12, 12)],
    ),
    "SegFormer": (segformer, [(2, 4, 64, 16), (2, 4, 16, 16)]),
}


def weights_of(
    query, key, bias=None, mask=None, scale=None, is_causal=False, **others
):
    """What Keras's fused operation weighs values with, in NumPy."""
    assert not any(others.values())
    query, key = ops.convert_to_numpy(query), ops.convert_to_numpy(key)
    scores = np.einsum("bthk,bshk->bhts", query, key)
    scores *= query.shape[-1] ** -0.5 if scale is None else scale
    if bias is not None:
        scores += ops.convert_to_numpy(bias)
    if mask is not None:
        scores = np.where(ops.convert_to_numpy(mask), scores, -1e30)
    if is_causal:
        past = np.tri(*scores.shape[-2:], dtype=bool)
        scores = np.where(past, scores, -1e30)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def is_map_of(softmax, weights):
    """Whether they are the same; blocks may stand behind the heads."""
    if softmax.size != weights.size:
        return False
    if softmax.ndim == 5 and len(weights) != len(softmax):
        softmax = softmax.swapaxes(1, 2)
    return np.allclose(softmax.reshape(-1), weights.reshape(-1), atol=1e-5)


@pytest.mark.parametrize("name", BACKBONES)
def test_every_softmax_is_a_map_or_has_a_name(name, recwarn):
    make, shapes, *more = BACKBONES[name]
    skipped = more[0] if more else {}
    num_others = more[1] if more[1:] else 0
    keras.utils.set_random_seed(0)
    model, inputs = make()
    expected, softmaxes = softmaxes_of(lambda: model(inputs))
    outputs, maps = get_attention_weights(model, inputs)
    for found, wanted in zip(
        tree.flatten(outputs), tree.flatten(expected), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)
    assert [weights.shape for weights in maps.values()] == shapes
    assert maps.skipped.keys() == skipped.keys()
    for path, reason in skipped.items():
        assert reason in maps.skipped[path]
    assert len(softmaxes) == len(maps) + num_others
    waiting = iter(softmaxes)  # in the order of the calls, as the maps are
    for path, weights in maps.items():
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
        assert any(is_map_of(softmax, weights) for softmax in waiting), path
    told = [str(warning.message) for warning in recwarn.list]
    assert any("There are no weights" in text for text in told) == bool(skipped)


def test_heads_that_are_folded_into_the_batch_are_heads():
    """ViTDet's, compared with a softmax of what it projects."""
    layer = part(
        "vit_det.vit_layers",
        "MultiHeadAttentionWithRelativePE",
        num_heads=4,
        key_dim=2,
        use_rel_pos=False,
        name="attention",
    )
    pictures = draw(3, 2, 5, 8)
    _, maps = get_attention_weights(layer, pictures)
    assert maps["attention"].shape == (3, 4, 10, 10)
    projected = ops.convert_to_numpy(layer.qkv(pictures))
    query, key, _ = np.moveaxis(projected.reshape(3, 10, 3, 4, 2), 2, 0)
    np.testing.assert_allclose(
        maps["attention"], weights_of(query, key), atol=1e-6
    )


def test_pictures_attend_to_themselves_without_strides():
    """Within a backbone, TensorFlow cannot build this block of keras-hub."""
    layer = part(
        "mobilenetv5.mobilenetv5_attention",
        "Attention2d",
        filters=8,
        num_heads=4,
        channel_axis=-1,
        data_format="channels_last",
        name="attention",
    )
    _, maps = get_attention_weights(layer, draw(2, 3, 5, 8))
    assert maps["attention"].shape == (2, 4, 15, 15)


def test_frames_that_attend_by_themselves_have_maps_of_their_own():
    """Qwen3.5 has a softmax for each frame of a film, and no batch."""
    layer = part(
        "qwen3_5.qwen3_5_vision_encoder",
        "Qwen3_5VisionAttention",
        hidden_size=8,
        num_heads=2,
        name="attention",
    )
    angles = (draw(12, 4), draw(12, 4))
    _, maps = get_attention_weights(layer, draw(12, 8), angles)
    assert maps["attention"].shape == (1, 2, 12, 12)
    starts = np.array([0, 5, 12], "int32")
    _, maps = get_attention_weights(layer, draw(12, 8), angles, starts)
    assert [w.shape for w in maps.values()] == [(1, 2, 5, 5), (1, 2, 7, 7)]


def test_the_time_mixes_of_rwkv_are_named():
    model = models.RWKV7Backbone(
        hidden_size=16,
        head_size=8,
        num_layers=1,
        vocabulary_size=11,
        intermediate_dim=16,
        gate_lora=4,
        mv_lora=4,
        aaa_lora=4,
        decay_lora=4,
    )
    inputs = {"token_ids": np.tile(IDS, 4), "padding_mask": np.tile(MASK, 4)}
    with pytest.raises(ValueError, match="forms no weights"):
        get_attention_weights(model, inputs)
