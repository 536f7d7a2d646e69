"""`python -m toolcrib` is the command `toolcrib`."""

from toolcrib.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
