"""Who may do what, and as which user of the machine: tokens, sessions of browsers, accounts."""
