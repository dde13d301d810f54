"""The tour and the drill: guided steps over the real app."""
