"""The mechanisms: a small Keras layer module."""
