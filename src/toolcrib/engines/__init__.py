"""Models, a file or a folder each: whatever reads a conversation and the tools it may call, and replies."""
