"""What this process itself reads and writes: memory, standard input, spouts, console."""
