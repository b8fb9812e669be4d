"""What the manager keeps: a database of jobs and of what happened to them, their figures, and who leads."""
