"""Looking after machines and runs, above the runtimes."""
