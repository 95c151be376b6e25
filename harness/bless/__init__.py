"""``cumatrix bless``: what was observed, as expectations of a case."""
