"""The checkpoint directory of a live flow: offsets, restart, savepoints, clean-up."""
