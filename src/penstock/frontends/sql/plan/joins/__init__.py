"""Joins: regular ones, in time, of versions, and with what a row itself holds."""
