"""The report: marts in, one self-contained HTML file out; computes no number and loads no game and no model."""
