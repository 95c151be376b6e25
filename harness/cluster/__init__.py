"""``--dask``: the cells of a run on the machines of a Dask cluster. Loaded by that option alone."""
