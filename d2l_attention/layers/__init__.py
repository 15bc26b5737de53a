"""The mechanisms: a module for each, named as its chapter."""
