"""Statements: what each one does to a flow."""
