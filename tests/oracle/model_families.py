"""The model families that `families.py` exports: of torchvision, and of Hugging Face's transformers, each in one small form.

`FAMILIES` is by name: a function that makes the module and its inputs. A family of transformers is made of its own default
configuration, in which what decides its size is made small (`SMALL`), with what its entry says besides.
"""

import inspect

import torch
import torch.utils._pytree as pytree
import torchvision.models as vision
import transformers
from torch import nn
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

FAMILIES = {}


class Tensors(nn.Module):
    """A model whose outputs are the tensors among those of another."""

    def __init__(self, model, **fixed):
        super().__init__()
        self.model = model
        self.fixed = fixed

    def forward(self, **inputs):
        outputs = self.model(**inputs, **self.fixed)
        return tuple(it for it in pytree.tree_leaves(outputs) if isinstance(it, torch.Tensor))


class Positional(nn.Module):
    """The same of a model that takes its inputs by position."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, *inputs):
        return tuple(it for it in pytree.tree_leaves(self.model(*inputs)) if isinstance(it, torch.Tensor))


# --- torchvision


def image(size, *, frames=None, batch=1):
    sizes = (batch, 3, size, size) if frames is None else (batch, 3, frames, size, size)
    return torch.rand(sizes)


def of_vision(name, make, *inputs):
    FAMILIES[f"torchvision_{name}"] = lambda: {"m": Positional(make()), "args": tuple(it() for it in inputs)}


def narrow(model, channels):
    """A classifier whose wide linear layers are narrow."""
    sizes = [channels, *[32] * (sum(isinstance(it, nn.Linear) for it in model.classifier) - 1), 10]
    layers = iter(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
    model.classifier = nn.Sequential(*[next(layers) if isinstance(it, nn.Linear) else it for it in model.classifier])
    return model


VISION = {
    "alexnet": (64, lambda: narrow(vision.alexnet(), 256 * 6 * 6)),
    "vgg": (32, lambda: narrow(vision.VGG(vision.vgg.make_layers([8, "M", 16, "M", 16, "M"], batch_norm=True)), 16 * 7 * 7)),
    "convnext": (
        64,
        lambda: vision.ConvNeXt([vision.convnext.CNBlockConfig(8, 16, 2), vision.convnext.CNBlockConfig(16, None, 2)]),
    ),
    "densenet": (64, lambda: vision.DenseNet(8, (2, 2, 2), 16)),
    "efficientnet": (64, lambda: vision.efficientnet_b0(num_classes=10)),
    "efficientnet_v2": (64, lambda: vision.efficientnet_v2_s(num_classes=10)),
    "googlenet": (64, lambda: vision.googlenet(num_classes=10, init_weights=False)),
    "inception_v3": (96, lambda: vision.inception_v3(num_classes=10, init_weights=False)),
    "maxvit": (
        64,
        lambda: vision.MaxVit(
            (64, 64), 8, 4, [8, 16], [1, 1], 8, 0.0, num_classes=10
        ),
    ),
    "mnasnet": (64, lambda: vision.mnasnet0_5(num_classes=10)),
    "mobilenet_v2": (64, lambda: vision.mobilenet_v2(num_classes=10, width_mult=0.25)),
    "mobilenet_v3": (64, lambda: vision.mobilenet_v3_small(num_classes=10)),
    "mobilenet_v3_large": (64, lambda: vision.mobilenet_v3_large(num_classes=10)),
    "regnet_x": (64, lambda: vision.regnet_x_400mf(num_classes=10)),
    "regnet_y": (64, lambda: vision.regnet_y_400mf(num_classes=10)),
    "resnet": (64, lambda: vision.resnet18(num_classes=10)),
    "resnet_bottleneck": (64, lambda: vision.ResNet(vision.resnet.Bottleneck, [1, 1, 1, 1], num_classes=10)),
    "resnext": (
        64,
        lambda: vision.ResNet(vision.resnet.Bottleneck, [1, 1, 1, 1], num_classes=10, groups=8, width_per_group=4),
    ),
    "wide_resnet": (64, lambda: vision.ResNet(vision.resnet.Bottleneck, [1, 1, 1, 1], num_classes=10, width_per_group=128)),
    "shufflenet_v2": (64, lambda: vision.shufflenet_v2_x0_5(num_classes=10)),
    "squeezenet": (64, lambda: vision.squeezenet1_0(num_classes=10)),
    "squeezenet_1_1": (64, lambda: vision.squeezenet1_1(num_classes=10)),
    "swin": (64, lambda: vision.SwinTransformer([4, 4], 16, [2, 2], [2, 4], [4, 4], num_classes=10)),
    "swin_v2": (
        64,
        lambda: vision.SwinTransformer(
            [4, 4],
            16,
            [2, 2],
            [2, 4],
            [4, 4],
            num_classes=10,
            block=vision.swin_transformer.SwinTransformerBlockV2,
            downsample_layer=vision.swin_transformer.PatchMergingV2,
        ),
    ),
    "vit": (32, lambda: vision.VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=10)),
    "deeplabv3_resnet": (64, lambda: vision.segmentation.deeplabv3_resnet50(weights_backbone=None, num_classes=5)),
    "deeplabv3_mobilenet": (
        64,
        lambda: vision.segmentation.deeplabv3_mobilenet_v3_large(weights_backbone=None, num_classes=5),
    ),
    "fcn_resnet": (64, lambda: vision.segmentation.fcn_resnet50(weights_backbone=None, num_classes=5)),
    "lraspp": (64, lambda: vision.segmentation.lraspp_mobilenet_v3_large(weights_backbone=None, num_classes=5)),
}
for name, (size, make) in VISION.items():
    of_vision(name, make, lambda size=size: image(size))

VIDEOS = {
    "video_r3d": lambda: vision.video.r3d_18(num_classes=10),
    "video_mc3": lambda: vision.video.mc3_18(num_classes=10),
    "video_r2plus1d": lambda: vision.video.r2plus1d_18(num_classes=10),
}
for name, make in VIDEOS.items():
    of_vision(name, make, lambda: image(32, frames=4))
of_vision("video_s3d", lambda: vision.video.s3d(num_classes=10), lambda: image(224, frames=14))
of_vision(
    "video_swin3d",
    lambda: vision.video.SwinTransformer3d([2, 4, 4], 16, [2, 2], [2, 4], [2, 4, 4], num_classes=10),
    lambda: image(32, frames=4),
)


def mvit(**given):
    setting = vision.video.mvit.MSBlockConfig
    first = setting(1, 16, 32, [3, 3, 3], [1, 8, 8], [1, 1, 1], [])
    blocks = [first, setting(2, 32, 32, [3, 3, 3], [1, 4, 4], [1, 2, 2], [])]
    first.kernel_kv = [3, 3, 3]
    blocks[0].kernel_q, blocks[0].stride_q, blocks[0].stride_kv = [3, 3, 3], [1, 1, 1], [1, 4, 4]
    blocks[1].kernel_q, blocks[1].stride_q, blocks[1].stride_kv = [3, 3, 3], [1, 2, 2], [1, 2, 2]
    options = {"residual_pool": False, "residual_with_cls_embed": True, "rel_pos_embed": False, "proj_after_attn": False}
    return vision.video.MViT((32, 32), 4, blocks, num_classes=10, **{**options, **given})


of_vision("video_mvit_v1", lambda: mvit(), lambda: image(32, frames=4))
of_vision(
    "video_mvit_v2",
    lambda: mvit(residual_pool=True, residual_with_cls_embed=False, rel_pos_embed=True, proj_after_attn=True),
    lambda: image(32, frames=4),
)
# Twelve updates, each of the one before it, amplify rounding; and RAFT refuses to run in float64, which would tell how much.
FAMILIES["torchvision_flow_raft"] = lambda: {
    "m": Positional(vision.optical_flow.raft_small()),
    "args": (image(128), image(128)),
    "tol": {"rtol": 1e-4, "atol": 1e-4},
}


class Detector(nn.Module):
    """A detector of a batch of one picture."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return tuple(pytree.tree_leaves(self.model([x[0]])))


DETECTORS = {
    "faster_rcnn": lambda it: vision.detection.fasterrcnn_mobilenet_v3_large_320_fpn(**it, min_size=64, max_size=64),
    "faster_rcnn_resnet": lambda it: vision.detection.fasterrcnn_resnet50_fpn(**it, min_size=64, max_size=64),
    "mask_rcnn": lambda it: vision.detection.maskrcnn_resnet50_fpn(**it, min_size=64, max_size=64),
    "keypoint_rcnn": lambda it: vision.detection.keypointrcnn_resnet50_fpn(**it, min_size=64, max_size=64),
    "retinanet": lambda it: vision.detection.retinanet_resnet50_fpn(**it, min_size=64, max_size=64),
    "fcos": lambda it: vision.detection.fcos_resnet50_fpn(**it, min_size=64, max_size=64),
    "ssd": lambda it: vision.detection.ssd300_vgg16(**it),
    "ssdlite": lambda it: vision.detection.ssdlite320_mobilenet_v3_large(**it),
}


def detector(make):
    return {"m": Detector(make({"weights": None, "weights_backbone": None, "num_classes": 3}).eval()), "args": (image(64),)}


for name, make in DETECTORS.items():
    FAMILIES[f"torchvision_{name}"] = lambda make=make: detector(make)


# --- transformers

WIDTH, LAYERS, HEADS, INNER, WORDS = 32, 2, 4, 64, 128
PICTURE, PATCH = 32, 8

# What decides the size of a model, by the names that configurations have for it.
SMALL = {
    **dict.fromkeys(
        "hidden_size d_model n_embd dim embed_dim emb_dim model_dim d_embed projection_dim embedding_size hidden_dim "
        "projection_size decoder_hidden_size attention_hidden_size lru_width backbone_hidden_size cross_attention_hidden_size "
        "vision_embed_dim vision_feature_dim encoder_hidden_dim out_hidden_size pooler_output_dim "
        "fpn_hidden_size time_mix_dim attention_dim feature_size mask_feature_size decoder_dim".split(),
        WIDTH,
    ),
    **dict.fromkeys(
        "num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers num_encoder_layers num_decoder_layers "
        "depth decoder_num_hidden_layers num_blocks layers text_depth "
        "r_layers l_layers x_layers".split(),
        LAYERS,
    ),
    **dict.fromkeys(
        "num_attention_heads n_head n_heads num_heads encoder_attention_heads decoder_attention_heads heads "
        "decoder_num_attention_heads num_encoder_attention_heads num_decoder_attention_heads".split(),
        HEADS,
    ),
    **dict.fromkeys("num_key_value_heads num_kv_heads encoder_num_key_value_heads decoder_num_key_value_heads".split(), 2),
    **dict.fromkeys(
        "intermediate_size ffn_dim n_inner encoder_ffn_dim decoder_ffn_dim d_ff inner_dim dim_feedforward ffn_hidden_size "
        "moe_intermediate_size shared_expert_intermediate_size decoder_intermediate_size ffn_size dff mlp_dim "
        "intermediate_size_mlp shared_intermediate_size encoder_intermediate_dim encoder_feedforward_dim "
        "decoder_feedforward_dim feed_forward_size intermediate_dim".split(),
        INNER,
    ),
    **dict.fromkeys("vocab_size text_vocab_size".split(), WORDS),
    **dict.fromkeys("max_position_embeddings n_positions max_seq_len max_target_positions max_sequence_length n_ctx".split(), 64),
    **dict.fromkeys("head_dim d_kv kv_channels attention_head_dim head_size".split(), WIDTH // HEADS),
    "image_size": PICTURE,
    "patch_size": PATCH,
    "num_experts": 4,
    "num_local_experts": 4,
    "n_routed_experts": 4,
    "moe_num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_k": 2,
    "n_group": 1,
    "topk_group": 1,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
    "mamba_d_state": 8,
    "mamba_n_heads": 8,
    "mamba_d_head": 8,
    "mamba_n_groups": 1,
    "state_size": 8,
    "sliding_window": 4,
    "num_mel_bins": 16,
    "max_source_positions": 32,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
}
# The same of what is said for each stage.
SMALL_STAGES = {
    **dict.fromkeys(("depths", "depth", "num_encoder_blocks"), lambda at: 1),
    **dict.fromkeys(("hidden_sizes", "embed_dims", "embed_dim", "encoder_hidden_sizes"), lambda at: 16 * (at + 1)),
    **dict.fromkeys(("num_attention_heads", "num_heads"), lambda at: 2),
}


def small(config_class, given):
    """A configuration of its class, small wherever it says a size, and with what is given."""
    default = config_class()
    options = {}
    for name, value in default.to_dict().items():
        part = getattr(default, name, None)
        is_list = isinstance(value, (list, tuple))
        if isinstance(part, transformers.PretrainedConfig):
            options[name] = small(type(part), given.pop(name, {})).to_dict()
        elif is_list and name in SMALL_STAGES and all(isinstance(it, int) for it in value):
            options[name] = [SMALL_STAGES[name](at) for at in range(len(value))]
        elif name in SMALL and value is not None and not is_list:
            options[name] = SMALL[name]
    return config_class(**(options | given))


def ids(*sizes):
    return torch.randint(5, WORDS - 5, sizes)


def text_inputs(config, takes):
    inputs = {"input_ids": ids(1, 8)}
    if "attention_mask" in takes:
        inputs["attention_mask"] = torch.ones(1, 8, dtype=torch.int64)
    if "decoder_input_ids" in takes:
        inputs["decoder_input_ids"] = ids(1, 6)
    return inputs


def vision_inputs(config, takes):
    size = getattr(config, "image_size", None)
    size = size if isinstance(size, int) else 64
    return {"pixel_values": torch.rand(1, getattr(config, "num_channels", 3), size, size)}


def both_inputs(config, takes):
    part = getattr(config, "vision_config", config)
    return text_inputs(config, takes) | vision_inputs(part, takes)


def wave_inputs(config, takes):
    return {"input_values": torch.randn(1, 1600)}


def spectrogram_inputs(config, takes):
    return {"input_values": torch.randn(1, config.max_length, config.num_mel_bins)}


def feature_inputs(config, takes):
    bins = getattr(config, "num_mel_bins", 16)
    inputs = {"input_features": torch.randn(1, bins, 64)}
    if "decoder_input_ids" in takes:
        inputs["decoder_input_ids"] = ids(1, 6)
    return inputs


def of_transformers(name, inputs, *, model=None, more=None, wide=0, label=None, **given):
    """A family: how its inputs are made, what its configuration says besides, and the class, unless it is the base model."""

    def make():
        config = small(CONFIG_MAPPING[name], dict(given))
        if model is None:
            net = transformers.AutoModel.from_config(config)
        else:
            net = getattr(transformers, model)(config)
        net.eval()
        takes = inspect.signature(net.forward).parameters
        call = inputs(config, takes) | (more() if more else {})
        net.config.use_cache = False
        fixed = {"use_cache": False} if "use_cache" in takes else {}
        return {"m": Tensors(net, **fixed), "kwargs": call}

    FAMILIES[f"transformers_{label or name}"] = make


ENCODERS = """albert bert bert-generation big_bird camembert canine convbert data2vec-text deberta deberta-v2 distilbert electra
ernie esm eurobert fnet funnel ibert layoutlm lilt longformer luke markuplm megatron-bert mobilebert modernbert mpnet mra
nomic_bert nystromformer rembert roberta roberta-prelayernorm roc_bert roformer splinter squeezebert tapas xlm
xlm-roberta xlm-roberta-xl xlnet xmod yoso flaubert jina_embeddings_v3 layoutlmv3 reformer""".split()
DECODERS = """apertus arcee bamba biogpt bitnet bloom codegen cohere cohere2 ctrl deepseek_v2 deepseek_v3 diffllama doge
dots1 ernie4_5 ernie4_5_moe exaone exaone4 falcon falcon_h1 falcon_mamba flex_olmo gemma gemma2 gemma3_text gemma3n_text glm glm4
glm4_moe gpt2 gpt_bigcode gpt_neo gpt_neox gpt_neox_japanese gpt_oss gptj granite granitemoe granitemoehybrid
granitemoeshared helium hunyuan_v1_dense hunyuan_v1_moe jamba jetmoe lfm2 llama longcat_flash mamba mamba2 minimax
ministral mistral mixtral modernbert-decoder moshi mpt nanochat nemotron olmo olmo2 olmo3 olmoe openai-gpt opt persimmon phi phi3
phimoe qwen2 qwen2_moe qwen3 qwen3_moe qwen3_next recurrent_gemma rwkv seed_oss smollm3 solar_open stablelm starcoder2 vaultgemma
xglm xlstm zamba zamba2 afmoe minimax_m2 lfm2_moe cpmant kimi_linear""".split()
SEQUENCES = """bart bigbird_pegasus blenderbot blenderbot-small fsmt led longt5 m2m_100 marian mbart mt5 mvp nllb-moe pegasus
pegasus_x plbart prophetnet switch_transformers t5 umt5 t5gemma t5gemma2 udop""".split()
PICTURES = """aimv2_vision_model beit bit clip_vision_model convnext convnextv2 data2vec-vision deit dinov2
dinov2_with_registers dinov3_convnext dinov3_vit donut-swin dpt efficientnet focalnet glpn hgnet_v2 hiera ijepa imagegpt levit
mobilenet_v1 mobilenet_v2 mobilevit mobilevitv2 mgp-str poolformer pvt pvt_v2 regnet resnet sam_vision_model segformer seggpt
siglip_vision_model siglip2_vision_model superpoint swiftformer swin swin2sr swinv2 textnet timesformer videomae
vit vit_mae vit_msn vitdet vitpose_backbone vivit vjepa2 yolos mlcd_vision_model pixio depth_anything zoedepth vitmatte upernet
detr conditional_detr deformable_detr table-transformer rt_detr rt_detr_v2 d_fine lw_detr rf_detr dab-detr maskformer mask2former
eomt sam superglue lightglue efficientloftr prompt_depth_anything depth_pro radio""".split()
PAIRS = """altclip blip blip-2 bridgetower chinese_clip clip clipseg flava git groupvit owlvit owlv2 siglip siglip2 vilt
vision-text-dual-encoder x_clip xclip metaclip_2 instructblip kosmos-2 idefics idefics2 idefics3 llava llava_next paligemma smolvlm
visual_bert lxmert layoutlmv2 grounding-dino mm-grounding-dino omdet-turbo tvp pix2struct trocr vipllava fuyu gemma3 got_ocr2
internvl janus mllama aria aya_vision qwen2_vl qwen2_5_vl qwen3_vl chameleon emu3 florence2""".split()
WAVES = """data2vec-audio hubert sew sew-d unispeech unispeech-sat wav2vec2 wav2vec2-conformer wavlm speecht5 univnet encodec dac
mimi moonshine vits xcodec""".split()
FEATURES = """speech_to_text wav2vec2-bert whisper
fastspeech2_conformer parakeet_encoder pop2piano musicgen granite_speech lasr_encoder""".split()

# What configurations say besides.
GIVEN = {
    "bit": {"embedding_size": 32, "hidden_sizes": [32, 64, 96, 128], "num_groups": 8},
    "audio-spectrogram-transformer": {"max_length": 64},
    "convnext": {"image_size": 64},
    "convnextv2": {"image_size": 64},
    "longcat_flash": {"num_key_value_heads": 4},
    "nemotron": {"head_dim": 8},
    "esm": {"vocab_size": WORDS, "mask_token_id": 3},
    "funnel": {"block_sizes": [1, 1], "block_repeats": [1, 1], "d_head": 8},
    "lilt": {"hidden_size": 48},
    "xmod": {"languages": ["en_XX"], "default_language": "en_XX"},
    "layoutlmv3": {"coordinate_size": 6, "shape_size": 4},
    "reformer": {"axial_pos_embds": False, "attn_layers": ["local", "lsh"], "attention_head_size": 8, "num_buckets": 2},
    "codegen": {"rotary_dim": 4},
    "gptj": {"rotary_dim": 4},
    "hunyuan_v1_dense": {"head_dim": 8},
    "hunyuan_v1_moe": {"head_dim": 8},
    "ministral": {"head_dim": 8},
    "mamba2": {"head_dim": 8, "num_heads": 8, "n_groups": 1},
    "luke": {"entity_vocab_size": 16},
    "deepseek_v2": {"num_key_value_heads": 4},
    "deepseek_v3": {"num_key_value_heads": 4},
    "dots1": {"n_routed_experts": 4, "n_shared_experts": 1},
    "falcon_h1": {"mamba_d_ssm": 64},
    "gemma3n_text": {"num_kv_shared_layers": 0},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
}

for names, inputs in (
    (ENCODERS, text_inputs),
    (DECODERS, text_inputs),
    (SEQUENCES, text_inputs),
    (PICTURES, vision_inputs),
    (PAIRS, both_inputs),
    (WAVES, wave_inputs),
    (FEATURES, feature_inputs),
    (["audio-spectrogram-transformer"], spectrogram_inputs),
):
    for name in names:
        of_transformers(name, inputs, **GIVEN.get(name, {}))
