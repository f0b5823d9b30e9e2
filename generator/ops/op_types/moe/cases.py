"""The cases of mixtures of experts: which experts are chosen, and at which scales."""

from __future__ import annotations

from dataclasses import replace

from generator.ops.far_factors import far_codes, with_factors
from generator.ops.op_types.moe import routing as moe_routing
from generator.ops.op_types.moe.inputs import remote_experts
from generator.ops.op_types.moe.names import BELOW
from kernel_judge.definition import Case, Definition

# size of a case → the most elements of the weights of its experts; 50 million take a CPU
# about half a second
_ELEMENTS = {"small": 90e6, "medium": 140e6, "large": 2500e6}


def few_cases(definition: Definition) -> list[Case]:
    """Return the cases of few tokens, as the definition routes them."""
    method = moe_routing.routing_of(definition)
    experts, local = moe_routing.experts_of(definition)
    far = experts - local
    elsewhere = [_case(definition, "experts-elsewhere", "small", 2, away=True)]
    if method == moe_routing.DEEPSEEK:
        usual = [
            _case(definition, "one-token", "small", 1),
            _case(definition, "last-experts", "small", 5, offset=far),
            _case(
                definition,
                "batch",
                "medium",
                24,
                offset=far // 2 // local * local,
                unusual=True,
                rivals=True,
            ),
            _case(definition, "large-batch", "large", 128, offset=far, unusual=True),
            _case(definition, "end-experts", "small", 2, offset=far, ends=True),
        ]
        return usual + elsewhere * (far > 0) + _rounded_scales(definition, far)
    alone = method == moe_routing.LLAMA4
    middle = far // 2 // local * local
    usual = [
        _case(definition, "one-token", "small", 1),
        _case(definition, "batch", "medium", 12, offset=far, uneven=not alone),
        _case(definition, "large-batch", "large", 128, offset=middle, uneven=not alone),
        _case(definition, "end-experts", "small", 2, offset=far, ends=True),
    ]
    usual += _rounded_scales(definition, far)
    if method == moe_routing.ROUTED:
        usual.append(_case(definition, "odd-weights", "small", 4, odd=True))
    if far:
        return usual + elsewhere
    if alone:
        # scores of 1 in float32, whose logits still differ
        usual.append(_case(definition, "saturated", "small", 3, saturated=True))
    return usual


def far_apart(definition: Definition, usual: list[Case]) -> list[Case]:
    """Return the cases whose scales are far from the usual, and outputs about 1.

    Where gate and up are large silu hardly bends, and where they are small it halves.
    """
    few = replace(usual[0], axes={"seq_len": 3})
    exponents: list[dict[str, float]] = []
    if weights_of(definition) == "fp8-block":
        scales = ("hidden_states_scale", "gemm1_weights_scale", "gemm2_weights_scale")
        # what a token's weights are multiplied by, where a factor is an input
        factor = 16.0 * ("routed_scaling_factor" in definition.interface.inputs)
        exponents = [
            dict(zip(scales, (21.0, -14.0, -14.0 - factor), strict=True))
            | {"routed_scaling_factor": factor},
            dict(zip(scales, (-20.0, 15.0, 10.0 + factor), strict=True))
            | {"routed_scaling_factor": -factor},
        ]
    elif weights_of(definition) == "fp8-per-tensor":
        scales = (
            "output1_scales_scalar",
            "output1_scales_gate_scalar",
            "output2_scales_scalar",
        )
        exponents = [
            dict(zip(scales, powers, strict=True))
            for powers in ((9.0, 9.0, -18.0), (-9.0, -9.0, 19.0))
        ]
    names = ("factors-up", "factors-down")
    return [
        *(
            with_factors(few, name, **powers)
            for name, powers in zip(names, exponents, strict=False)
        ),
        *_far_codes(definition, few),
    ]


def _far_codes(definition: Definition, few: Case) -> list[Case]:
    """Return the cases of subnormal and of saturated codes, if they are of 8 bits."""
    codes = dict.fromkeys(("hidden_states", "gemm1_weights", "gemm2_weights"), 1)
    if weights_of(definition) == "fp8-block":
        scales = {f"{name}_scale": -1 for name in codes}
        smallest, saturated = far_codes(few, **codes, **scales)
        # what is clipped is less than the scales expect
        moved = {**saturated.moved, "gemm2_weights_scale": -1.0}
        return [smallest, with_factors(few, saturated.name, **moved)]
    if weights_of(definition) == "fp8-per-tensor":
        first = ("output1_scales_scalar", "output1_scales_gate_scalar")
        scalars = {**dict.fromkeys(first, -2), "output2_scales_scalar": -1}
        return far_codes(few, **codes, **scalars)
    return []


def _rounded_scales(definition: Definition, offset: int) -> list[Case]:
    """Return the case that tells scales in bfloat16, if the definition has scales."""
    if weights_of(definition) == "fp4":
        return []
    return [_case(definition, BELOW, "medium", 24, offset=offset, below=True)]


def _case(
    definition: Definition,
    name: str,
    size: str,
    tokens: int,
    offset: int = 0,
    saturated: bool = False,
    away: bool = False,
    ends: bool = False,
    uneven: bool = False,
    unusual: bool = False,
    rivals: bool = False,
    below: bool = False,
    odd: bool = False,
) -> Case:
    """Return a case whose weights have at most `_ELEMENTS` elements in use.

    `offset` is the first local expert; with `away` no local expert is selected. With
    `saturated` the largest logits are about 24. With `ends` the first and the last local expert are
    selected. With `odd` packed weights end in a bit of 1. With `uneven` no two tokens have
    the same weights. With `rivals` bits of logits decide that bfloat16 does not have. With
    `unusual` the scaling factor is not the model's, and the bias makes all scores negative.
    float8 scales have 4 significant bits in small cases, which are recorded, and 24 in
    others; with `below` they are below midpoints of bfloat16.
    """
    experts, local = moe_routing.experts_of(definition)
    top_k = definition.constants["top_k"]
    most = int(_ELEMENTS[size] // expert_elements(definition))
    # with only top_k experts nothing would be left to select
    fewest = 0 if experts > local else top_k + 3
    here = 0 if away else min(local, max(most, fewest, 1))
    remote = remote_experts(definition, here)
    params = {"local": here, "remote": remote, "offset": offset}
    # whether the interface has a bias that nothing adds: recordings name it
    params["bias"] = moe_routing.routing_of(definition) == moe_routing.LLAMA4
    if saturated:
        params["top"] = 24.0
    if ends:
        params |= {"local": min(local, max(here, 2)), "ends": True}
    if uneven:
        params["uneven"] = True
    if odd:
        params["odd"] = True
    if rivals:
        params["rivals"] = True
    if below:
        # with DeepSeek's 2.5 outputs would be up to 15, more than bounds assume
        params |= {"below": True, "factor": 1.0}
    elif size != "small" and weights_of(definition) != "fp4":
        params["all_bits"] = True
    if unusual:
        params |= {"factor": 1.5, "bias_mean": -1.5}
    return Case(name, size, {"seq_len": tokens}, params)


def expert_elements(definition: Definition) -> int:
    """Return how many elements the weights of one expert have."""
    axes = definition.axes
    return 3 * axes["hidden_size"] * axes["intermediate_size"]


def weights_of(definition: Definition) -> str:
    """Return the format of the weights: fp8-block, fp8-per-tensor or fp4."""
    inputs = definition.interface.inputs
    if "gemm1_weights_scale" in inputs:
        return "fp8-block"
    return "fp8-per-tensor" if "output1_scales_scalar" in inputs else "fp4"
