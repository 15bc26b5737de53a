"""What is stacked of the mechanisms, and how models decode."""
