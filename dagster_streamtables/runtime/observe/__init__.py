"""Monitoring and control: status, history, events, suspension."""
