"""Bugs planted into the machine's rules: each is a real bug of the field, or a near relative, as a few changed lines.

A plant changes functions where they are used, for the time of one test. `explore` must find it, under the name of one
property and by a shortest path, whose length is written down.
"""
