"""`fedkge federation ...`: a federation of organisations on their own machines."""
