"""Kernels of patterns: every run, and the preferred match."""
