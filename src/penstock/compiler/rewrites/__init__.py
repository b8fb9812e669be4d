"""The passes of the compiler, one file each."""
