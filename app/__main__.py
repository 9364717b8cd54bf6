"""Starts `worldsize`, also as `python -m app`. Loading the commands takes a moment, in which Ctrl-C is answered too."""

from __future__ import annotations

import sys

INTERRUPTED = 130  # what a shell reports of a program that Ctrl-C ended


def main() -> int:
    """Run the command that was typed and return its exit status."""
    try:
        from app.cli import main as run

        return run()
    except KeyboardInterrupt:
        print("worldsize: stopped; nothing is left running.", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
