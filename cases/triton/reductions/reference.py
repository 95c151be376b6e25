"""Sum and greatest value, prefix sums, sorted values."""


def reduce(x, out):
    wide = x.astype("float64")
    out[0] = wide.sum() + wide.max()
    out[1:129] = wide.cumsum()
    out[129:] = sorted(x)
