"""Records that a step fails on: policies, dead letters, and how a failure reaches the driver."""
