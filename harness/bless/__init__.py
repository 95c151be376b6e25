"""``cumatrix bless``: turn observed outcomes into the expectations of a case."""
