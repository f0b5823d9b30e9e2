"""The rules on definitions: names, interface, reference."""

from __future__ import annotations

from generator.rules.rule import blocking, error, note, warning

NAMES = (
    blocking(
        "name-unsafe",
        "A name can't be used as an identifier.",
        "Use letters, digits and underscores, begin with a letter, at most 200.",
        '`"axes": {"../x": ...}`, or an input named `lambda`',
    ),
    blocking(
        "name-file",
        "The definition's name is not the file's name.",
        "Make the two the same.",
        '`"name": "gemm_n8_k5"` in gemm_n8_k4.json',
    ),
    blocking(
        "name-op-type",
        "The definition's op_type is not the folder's name.",
        "Make the two the same.",
        '`"op_type": "rmsnorm"` in definitions/gemm/',
    ),
    error(
        "name-token",
        "The definition's name states a constant that its axes contradict.",
        "Correct the name or the axis.",
        "gqa_paged_decode_h32_... where num_qo_heads is 16",
    ),
    blocking(
        "name-duplicate",
        "Two files define the same name.",
        "Rename or remove one of them.",
        "gemm/gemm_n8_k4.json and other/gemm_n8_k4.json",
    ),
    blocking(
        "name-case",
        "Two names differ only by case: some file systems hold only one of them.",
        "Rename one of them.",
        "gemm_n8_k4 and GEMM_n8_k4",
    ),
)

INTERFACE = (
    blocking(
        "axis-undeclared",
        "A shape names an axis that the definition does not declare.",
        "Declare the axis or correct the shape.",
        '`"shape": ["M", "Q"]` without an axis Q',
    ),
    blocking(
        "axis-case",
        "Two axes differ only by case; a rendered test writes them in capitals.",
        "Rename one of them.",
        "the axes M and m",
    ),
    error(
        "axis-unused",
        "A variable axis appears in no shape and no constraint.",
        "Use the axis in a shape or remove it.",
        '`"L": {"type": "var"}` that no shape names',
    ),
    warning(
        "axis-unused-const",
        "A constant axis appears in no shape, no constraint and not in the name.",
        "Use the axis or remove it.",
        '`"L": {"type": "const", "value": 2}` that no shape names',
    ),
    error(
        "input-output-overlap",
        "An output has the name of an input.",
        "Rename the output.",
        "the input `state` and the output `state`",
    ),
    blocking(
        "constraint-syntax",
        "A constraint is not a Python expression.",
        "Write one expression over axes and inputs, such as `n == m + 1`.",
        '`"len_indptr == "`',
    ),
    blocking(
        "constraint-name",
        "A constraint uses a name that is no axis, input or known function.",
        "Use the names of axes and inputs.",
        '`"len_indptr == batch + 1"` where the axis is batch_size',
    ),
)

REFERENCE = (
    blocking(
        "reference-syntax",
        "The reference is not valid Python.",
        "Correct the source at that line.",
        "`def run(:`",
    ),
    blocking(
        "reference-no-run",
        "The reference has no top-level function `run`.",
        "Define `def run(...)` at the top level, with the inputs as parameters.",
        "only `def gemm_reference(a, b):`",
    ),
    blocking(
        "reference-run-kind",
        "The reference's `run` is not a plain function.",
        "Write it as `def run(...)` that returns its outputs.",
        "`run = torch.matmul`",
    ),
    blocking(
        "reference-parameters",
        "The parameters of `run` are not the inputs in their order.",
        "List the inputs as parameters, in the order of `inputs`.",
        "`def run(B, A):` where the inputs are A, B",
    ),
    error(
        "reference-returns",
        "The reference's `run` does not return one value for each output.",
        "Return a tensor, or a tuple in the order of `outputs`.",
        "`return output` where the outputs are output and lse",
    ),
    warning(
        "reference-import",
        "The reference imports more than torch, numpy, math and typing.",
        "Write the computation in plain PyTorch.",
        "`import flashinfer`",
    ),
    error(
        "reference-assert",
        "The reference asserts a size that the definition's axes contradict.",
        "Correct the assert or the axis.",
        "`assert head_dim == 64` where head_dim is 128",
    ),
    warning(
        "reference-in-place",
        "The reference writes to an input, which callers don't expect.",
        "Clone the input and return what changes; or say in the description of a buffer "
        "that it is written to.",
        "`x.add_(residual)`, or `cache[i] = k`",
    ),
    warning(
        "reference-global",
        "The reference changes state that outlives the call.",
        "Keep everything in local names; pass a torch.Generator for random numbers.",
        "`torch.manual_seed(0)`, or `global calls`",
    ),
    note(
        "reference-token-loop",
        "The reference loops over tokens in Python, which is slow for real workloads.",
        "Compute all tokens at once, where that reads as well.",
        "`for t in range(num_tokens):`",
    ),
)
