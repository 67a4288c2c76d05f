"""Traces: the commands of one run as data, on disk in ITF JSON, replayed, shrunk and kept."""
