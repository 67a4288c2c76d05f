"""Which blocks a launch stores to the host: chosen without changing anything, so that it can also just be asked."""
