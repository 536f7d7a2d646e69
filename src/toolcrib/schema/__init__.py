"""Where a tool's JSON Schema comes from, and what becomes of it for each provider."""
