"""What `python -m d2l_attention train` runs, in one worker or in several."""
