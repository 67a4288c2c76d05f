"""Searching state spaces: canonical forms, the graph of states, fair reachability and cycles, coverage."""
