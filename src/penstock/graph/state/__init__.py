"""The seam between the work of a step and what it keeps: kernels use it, `penstock.state` implements it, hosts join them."""
