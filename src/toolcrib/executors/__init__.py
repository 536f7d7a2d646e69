"""What runs a validated call, and the concerns that wrap around it."""
