"""Families of generated images: each draws scenes from recipes calibrated on published data sets."""
