"""The routes of the API, a module for each subject; those of jobs themselves are in `penstock.server.app`."""
