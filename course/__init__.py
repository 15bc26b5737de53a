"""How the chapters are made, handed out and graded."""
