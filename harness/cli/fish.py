"""Completion for fish of words with commas in them: click's script for it takes what stands before the first one only."""

from __future__ import annotations

from click.shell_completion import FishComplete, add_completion_class

_SPLIT = 'string split ","'


@add_completion_class
class FishWords(FishComplete):
    """click's completion for fish, whose script parts a completion from its type at the first comma and at no other."""

    source_template = FishComplete.source_template.replace(_SPLIT, 'string split -m 1 ","')
