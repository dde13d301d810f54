"""The full screen. With demo/ the only room that may import textual or rich."""
