"""Commands that speak to the server of jobs."""
