"""Other ways to attend, each in a module of its own."""
