"""Loading flows, starting runs and looking after them, above the runtimes and below the commands."""
