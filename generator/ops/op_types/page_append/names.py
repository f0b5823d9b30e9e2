"""Names of inputs that the bounds need as well; imports no torch."""

# cache → the rows that are appended to it
ROWS = {
    "k_cache": "append_key",
    "v_cache": "append_value",
    "ckv_cache": "append_ckv",
    "kpe_cache": "append_kpe",
}
