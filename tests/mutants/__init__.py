"""Mutation testing: every small change of the control plane and of the predicates is noticed by some test."""
