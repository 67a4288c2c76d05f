"""Safety: one module a property, of the same name."""
