"""Answers: from a question in plain words to what was tried of it. Pure, but for `read`, which opens files; needs no pandas."""
