"""Trident: batches with a transaction id, states that count each batch once, and functions that are called from outside."""
