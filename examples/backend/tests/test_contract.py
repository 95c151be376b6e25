"""``pip install cumatrix . pytest cuda-core cuda-bindings==12.* && pytest``"""

from cumatrix.contract import BackendContract


class TestExample(BackendContract):
    """The backend keeps to what every backend keeps to."""

    backend = "cuda-core-example"
    toolkit = "12.9"
