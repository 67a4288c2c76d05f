"""What executes a worker's streams. Import the device you want by module: only `host` and `cuda` need torch."""
