"""The demo: trending hashtags over generated posts."""
