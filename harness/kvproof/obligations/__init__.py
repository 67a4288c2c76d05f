"""Obligations: what is held against an engine that schedules in its own way, and is not taken through the machine.

The machine says what a reference would do next; an engine like vLLM does something else, and much of that is legal.
What remains is what every engine owes: computes read what was written, no block has two owners or none, a reset that
answers True serves nothing old, nothing waits for ever. `workers` holds the ghosts by which that is seen, `judge` says
which property is broken, and `walk` and `search` bring it about.
"""
