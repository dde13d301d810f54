"""One desk for many sessions, on this machine and on others."""
