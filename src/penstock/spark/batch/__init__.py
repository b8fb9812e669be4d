"""One batch of a plan: sources in, sinks out."""
