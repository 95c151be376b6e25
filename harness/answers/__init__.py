"""Answers to questions in plain words, from recorded cells. No module of this package needs pandas.

Only `read` opens files.
"""
