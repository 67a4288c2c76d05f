"""The specification in first-order logic, and its proofs for every size. Only this package imports z3.

Read `state` (the tables), then `actions` (each action once), then `invariants` and `properties`. The same functions are
read three ways: by z3 with sorts of any size (`parametric`), by z3 at a finite scope (`finite`, `bounded`), and by
Python on concrete tables (`interpreter`), which is how they are held against the machine.
"""
