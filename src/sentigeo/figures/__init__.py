"""Every figure and interactive page: an analysis in, a figure out."""
