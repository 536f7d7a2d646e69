"""Where schemas that a model wrote are kept, one file each."""
