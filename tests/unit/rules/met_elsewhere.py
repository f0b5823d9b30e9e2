"""Rules that no change of one small dataset shows, and the test that meets each."""

from __future__ import annotations

from generator.rules.catalogue import GROUPS

# what the small dataset can't break, and the tests that do
ELSEWHERE = {
    "rendered-file-edited": "tests/functional/test_gen_tests_files.py",
    "rendered-file-kept": "tests/functional/test_stranger.py",
    "custom-inputs-unfit": "tests/unit/dialects/test_import.py",
    "oracle-unfit": "tests/functional/test_proofs.py",
    "file-unreadable": "tests/unit/dataset/test_json_file.py",
    "tag-fi-api": "tests/unit/rules/test_flashinfer_symbols.py",
    "name-route": "tests/unit/rules/test_routes.py",
    "name-route-other": "tests/unit/rules/test_routes.py",
    "accepted-file": "tests/unit/rules/test_accepted.py",
    "accepted-unused": "tests/unit/rules/test_accepted.py",
    **dict.fromkeys(
        ("tag-kernel", "tag-parallel", "tag-spelling", "tag-layout"),
        "tests/unit/rules/test_tag_claims.py",
    ),
    "route-interface": "tests/unit/rules/test_route_calls.py",
    "route-constant": "tests/unit/rules/test_route_calls.py",
    "model-config": "tests/functional/test_validate_options.py",
    "reference-unproven": "tests/unit/ops/test_serving.py",
    **{
        rule.id: "tests/functional/test_validate_execute.py"
        for rule in GROUPS["execute"]
    },
    "execute-workload": "tests/functional/test_validate_workloads.py",
}
