"""Makes a failing trace small: fewer commands, requests, workers, blocks and symbols, and completions in order."""
