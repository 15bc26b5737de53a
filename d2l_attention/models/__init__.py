"""Models, and what brings weights into them."""
