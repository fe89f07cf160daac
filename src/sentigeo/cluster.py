"""The public place of `align_clusters`, whose code is in `analysis/clusters.py`."""

from sentigeo.analysis.clusters import align_clusters as align_clusters
