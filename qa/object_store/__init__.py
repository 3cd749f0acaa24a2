"""Commits to S3: writers of two engines that race on a store with faults."""
