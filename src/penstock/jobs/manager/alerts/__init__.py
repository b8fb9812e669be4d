"""Alerts: what is watched in jobs and on the machine, and who is told when it lasts."""
