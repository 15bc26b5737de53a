"""Attention in large models: less memory, less to read, or less to compute."""
