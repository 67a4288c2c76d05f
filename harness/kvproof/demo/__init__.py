"""What `kvproof demo` writes: an engine with one planted bug."""
