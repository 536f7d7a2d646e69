"""Models, one file each: whatever reads a conversation and the tools it may call, and replies."""
