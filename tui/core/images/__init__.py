"""Images that a person attaches: by path, by a paste, from the clipboard."""
