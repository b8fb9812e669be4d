"""Signing in by an OpenID Connect provider: the authorization code flow with PKCE, state and nonce."""
