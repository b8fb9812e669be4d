"""The work of each step, in plain Python and Arrow; a kernel does not know its host."""
