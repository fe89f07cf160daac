"""The public place of `load_reviews`, whose code is in `data/reviews.py`."""

from sentigeo.data.reviews import load_reviews as load_reviews
