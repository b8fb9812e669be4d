"""Components in any language: programs that speak Storm's multilang protocol."""
