"""Options, fixtures and reports of the reference tests.

Rendered: don't edit. `gen-tests` renders this file anew.
"""

from generator.running.handwritten import (
    assert_close,
    check_hit_ratio,
    compile_reference,
    compute_error_metrics,
    definitions_of,
    device,
)
from generator.running.plugin import (
    pytest_addoption,
    pytest_collection_modifyitems,
    pytest_configure,
    pytest_generate_tests,
    pytest_report_header,
    recordings,
    related,
    trial,
)

__all__ = [
    "assert_close",
    "check_hit_ratio",
    "compile_reference",
    "compute_error_metrics",
    "device",
    "load_definition",
    "pytest_addoption",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_generate_tests",
    "pytest_report_header",
    "recordings",
    "related",
    "trial",
]

# hand-written tests beside these import it, and the five names above
load_definition = definitions_of(__file__)
