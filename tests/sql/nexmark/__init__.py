"""The Nexmark benchmark."""
