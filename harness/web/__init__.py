"""Downloads of cumatrix itself: addresses without their secrets (`address`), and one request with its limits (`download`)."""
