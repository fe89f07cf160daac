"""One analysis per file: arrays and frames in, arrays and frames out."""
