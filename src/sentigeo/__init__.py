"""Sentigeo: does a BERT encoder lay out sentiment as geometry?"""
