"""The functions that run on the device, compiled on first launch. Nothing here moves or checks an array."""
