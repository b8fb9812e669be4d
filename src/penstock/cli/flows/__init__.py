"""Commands that run a flow or look at one."""
