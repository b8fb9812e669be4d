"""How commands show progress, tables and errors."""
