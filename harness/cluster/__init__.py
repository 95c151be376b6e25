"""``--dask``: cells on the workers of a Dask cluster. Only this option loads the package."""
