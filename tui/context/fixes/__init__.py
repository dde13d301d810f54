"""The steps of the repair engine, one module each: blocks, pairs, order, media."""
