"""The JVM: Java, JARs, the gateway and the session."""
