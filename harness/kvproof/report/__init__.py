"""What a run says: one screen when all is well, the violation when it is not, and JSON for machines."""
