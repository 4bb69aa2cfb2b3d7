"""The report: marts in, one HTML file out; computes no number, loads no game and no model."""
