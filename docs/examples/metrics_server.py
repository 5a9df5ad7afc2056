"""Answers GET /metrics with what `sluice metrics` prints: python3 metrics_server.py [--broker URL] [--key FILE] [--port 9464]

One request at a time, on this machine alone: what Prometheus needs, and no more.
"""
import argparse
import http.server

import sluice

TYPES = {False: "text/plain; version=0.0.4; charset=utf-8", True: "application/openmetrics-text; version=1.0.0; charset=utf-8"}


class Metrics(http.server.BaseHTTPRequestHandler):
    client: sluice.Client

    def do_GET(self) -> None:
        if self.path != "/metrics":
            self.send_error(404)
            return
        openmetrics = "application/openmetrics-text" in self.headers.get("Accept", "")
        try:
            text = self.client.metrics(openmetrics).encode()
        except sluice.SluiceError as error:
            self.send_error(503, explain=str(error))
            return
        self.send_response(200)
        self.send_header("Content-Type", TYPES[openmetrics])
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--broker", help="the broker's address; SLUICE_BROKER, if it is not given")
    parser.add_argument("--key", help="an admin's key")
    parser.add_argument("--port", type=int, default=9464)
    options = parser.parse_args()
    Metrics.client = sluice.Client(options.broker, key=options.key, timeout=5)
    http.server.HTTPServer(("127.0.0.1", options.port), Metrics).serve_forever()
