"""Targets: the real engines that are held against the machine, and the language in which they are driven."""
