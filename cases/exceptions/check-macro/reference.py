"""What the kernel does from MINIMUM on."""


def scale(values, factor):
    values *= factor
