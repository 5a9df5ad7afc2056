"""Talking to the broker: sockets, the messages on the wire, requests and their answers."""
