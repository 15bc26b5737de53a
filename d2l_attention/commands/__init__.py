"""The commands of `python -m d2l_attention`, one file each."""
