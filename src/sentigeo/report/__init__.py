"""Running the notebooks, and publishing what they made."""
