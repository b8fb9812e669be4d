"""Joins of tables that change."""
