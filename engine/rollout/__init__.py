"""Rollout: grows search trees by generation and verification, and schedules both."""
