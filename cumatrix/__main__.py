"""``python -m cumatrix``: the command, where its folder is not on the PATH."""

from harness.cli import main

if __name__ == "__main__":
    main()
