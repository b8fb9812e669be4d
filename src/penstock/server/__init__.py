"""The server of jobs: everything that the command line and the console do goes through its REST API."""
