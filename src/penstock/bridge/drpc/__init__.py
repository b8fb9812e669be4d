"""Calls of functions from outside: requests into the log, answers out of it, and a server for them."""
