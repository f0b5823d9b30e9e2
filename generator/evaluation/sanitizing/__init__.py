"""compute-sanitizer on what passed: its tools as conditions."""
