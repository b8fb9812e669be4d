"""Alerts: what is watched in jobs and on the machine, and who gets a notice when it lasts."""
