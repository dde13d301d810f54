"""The steps of the repair engine: blocks (attachments, sound), pairs, order, media."""
