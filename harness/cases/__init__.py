"""Cases on disk: reading and checking ``case.toml``, choosing cases, their options, their JSON Schema."""
