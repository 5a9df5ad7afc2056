"""`sluice session end`: the POST, over HTTP and over HTTPS, where who answers must be who the URL names."""
import contextlib
import http.server
import json
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import unittest

SLUICE = os.path.join(os.environ["SLUICE_BINARY_DIR"], "client", "sluice")
if not shutil.which("openssl"):
    print("skipped: there is no openssl, which makes the certificates")
    sys.exit(77)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, body))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.server.answer or json.dumps({"reward": body.get("reward")}).encode())

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serve(context=None, answer=None):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # who hangs up in the middle of a greeting
    server.asked, server.answer = [], answer
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Ends(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="sluice-test-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.certificate, key = f"{cls.folder}/certificate", f"{cls.folder}/key"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out",
                        cls.certificate, "-days", "30", "-subj", "/CN=sluice test", "-addext", "subjectAltName=DNS:localhost"],
                       check=True, capture_output=True)
        cls.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        cls.context.load_cert_chain(cls.certificate, key)

    def end(self, url, *options, **environment):
        plain = {name: value for name, value in os.environ.items() if name != "SSL_CERT_FILE"}
        return subprocess.run([SLUICE, "session", "end", url, "--reward", "0.5", *options], env={**plain, **environment}, capture_output=True,
                              text=True, timeout=90, check=False)

    def assert_refused(self, done, words):
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(words, done.stderr)

    def test_it_is_told_over_http_whatever_proxy_is_set(self):
        with serve() as server:
            done = self.end(f"http://127.0.0.1:{server.server_port}/s/secret", "--detail", "by hand", "--json", http_proxy="http://127.0.0.1:9")
        self.assertEqual((done.returncode, json.loads(done.stdout)), (0, {"reward": 0.5}), done.stderr)
        self.assertEqual(server.asked, [("/s/secret/end", {"reward": 0.5, "detail": "by hand"})])
        self.assert_refused(self.end(f"http://127.0.0.1:{server.server_port}/s/secret"), "127.0.0.1: ")

    def test_it_is_told_over_https_to_one_whose_authority_is_named(self):
        with serve(self.context) as server:
            url = f"https://localhost:{server.server_port}/s/secret"
            for done in (self.end(url, "--cacert", self.certificate), self.end(url, SSL_CERT_FILE=self.certificate),
                         self.end(url, "--cacert", self.certificate, SSL_CERT_FILE="/nowhere")):
                self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(server.asked), 3)

    def test_who_cannot_be_known_is_told_nothing(self):
        with serve(self.context) as server:
            url = f"https://localhost:{server.server_port}/s/secret"
            self.assert_refused(self.end(url), "certificate")
            self.assert_refused(self.end(url.replace("localhost", "127.0.0.1"), "--cacert", self.certificate), "127.0.0.1")
            self.assert_refused(self.end(url, "--cacert", "/nowhere"), "/nowhere")
        self.assertEqual(server.asked, [])

    def test_an_answer_without_an_end_is_not_read(self):
        with serve(answer=b" " * (1 << 20)) as server:
            self.assert_refused(self.end(f"http://127.0.0.1:{server.server_port}/s/secret"), "longer than 65536 bytes")


if __name__ == "__main__":
    unittest.main()
