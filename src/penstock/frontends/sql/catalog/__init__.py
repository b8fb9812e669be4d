"""What names stand for: tables, views and functions, and the options of their connectors."""
