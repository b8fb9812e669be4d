"""From text to statements: tokens, statements, types, and errors that point to their place."""
