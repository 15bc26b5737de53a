"""Models, which stack the layers, and how they decode."""
