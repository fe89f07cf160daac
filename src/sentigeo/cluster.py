"""The public place of `align_clusters`."""

from sentigeo.analysis.clusters import align_clusters

__all__ = ["align_clusters"]
