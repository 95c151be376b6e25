"""The command as ``python -m cumatrix``, for environments whose scripts are not on PATH."""

from harness.cli import main

if __name__ == "__main__":
    main()
