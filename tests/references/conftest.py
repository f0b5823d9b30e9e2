"""Options, fixtures and reports of the reference tests.

Rendered: don't edit. `gen-tests` renders this file anew.
"""

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
    "pytest_addoption",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_generate_tests",
    "pytest_report_header",
    "recordings",
    "related",
    "trial",
]
