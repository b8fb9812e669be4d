"""Dead letters that a flow keeps, and their replay."""
