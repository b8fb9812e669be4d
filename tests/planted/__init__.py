"""Known bugs, planted on purpose: each must be caught by a check that the project has anyway."""
