"""Pathways: how experience is carried on; a module's name is the pathway's id."""
