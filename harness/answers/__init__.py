"""Answers to questions in plain words, from recorded cells. No module here needs pandas; only `read` opens files."""
