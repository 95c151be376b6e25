"""Web requests of cumatrix itself: addresses without secrets, and downloads with limits."""
