"""Names of inputs that the bounds need as well; imports no torch."""

ROWS = ("q_rope", "k_rope", "q_nope", "k_nope", "v")
CACHES = ("k_cache", "v_cache", "ckv_cache", "kpe_cache")
