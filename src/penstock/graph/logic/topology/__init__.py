"""The classes a user writes for a topology, and what they are given."""
