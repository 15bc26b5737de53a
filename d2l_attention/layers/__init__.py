"""The mechanisms, a module for each, and what several of them share."""
