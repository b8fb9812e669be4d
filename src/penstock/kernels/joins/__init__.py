"""Joins with static tables and with other streams."""
