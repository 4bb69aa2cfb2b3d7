"""Interventions: one link of a cell's chain replaced, and everything else kept; a module's name is its id."""
