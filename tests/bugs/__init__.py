"""The bank: bugs planted in kvoffload and lies of its adapter, and what catches each. See README.md."""
