"""The fluent way to write a flow."""
