"""Sentigeo: does a six-layer BERT-type sentence encoder lay out sentiment as geometry?"""
