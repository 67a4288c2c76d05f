"""What workers report about transfers, and when that makes a transfer complete."""
