#!/usr/bin/env python3
"""unread.py FEED: a subscriber to all of a broker's streams, which reads nothing."""
import signal
import sys

import zmq

with zmq.Context() as context, context.socket(zmq.SUB) as feed:
    feed.linger = 0
    feed.set_hwm(0)
    feed.connect(sys.argv[1])
    feed.subscribe("t/")
    signal.pause()
