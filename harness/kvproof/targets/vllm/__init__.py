"""vLLM's real schedulers and offload connectors, unmodified, as watched targets.

`engine` drives vLLM's Scheduler as its engine core does; `recording` has the connectors, loaded through vLLM's option
for out-of-tree connectors; `offloading` and `simple` are the targets; `private` is the one place that reads what vLLM
does not promise, `release` says what differs between its releases.
"""
