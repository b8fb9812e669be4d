"""`penstock sql`: the shell, its completion and how it shows answers."""
