"""Liveness by ranking, for every size: what is left to be done is a finite set, and it runs out.

The rule, for each theorem (`theorems`): while something is left,
- some member of the set is such that what takes it away may happen (`possible`);
- once that may happen, it stays so until it has happened (`progress`);
- it does take the member away, and nothing that anybody does adds one (`progress`).
So whoever is fair (`fairness`) takes the members away, one after another, until none is left. A set of operations, of
workers or of jobs is finite in every state; it is ordered by inclusion, and no size is ever computed.
"""
