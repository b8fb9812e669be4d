"""Flows as files: Penstock's own YAML, and Storm's Flux."""
