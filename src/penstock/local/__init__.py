"""The runtime without a JVM."""
