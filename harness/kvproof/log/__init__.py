"""Logs: what a running engine did, line by line, and whether the contract explains it."""
