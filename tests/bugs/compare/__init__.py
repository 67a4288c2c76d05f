"""The bank under what a project without a reference model would use: a stateful test, and a random walk."""
