"""Training by a command, on one machine or several, resumed after a kill.

    python -m d2l_attention.train RUN --model transformer --workers 2

`python -m d2l_attention.train --help` tells the rest.
"""
