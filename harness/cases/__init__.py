"""Cases on disk: read and check ``case.toml``, select cases, and describe their keys as JSON Schema."""
