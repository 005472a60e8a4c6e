"""Experiments: measuring a dictionary on images, benchmarks, and the paper's results again."""
