"""A registry of npm and of PyPI on 127.0.0.1, with packages that a test makes."""
import base64
import hashlib
import http.server
import io
import json
import tarfile
import threading
import urllib.parse
import zipfile


def tarball(name, version, files, **more):
    """An npm package: files as PATH: TEXT; those in bin/ may be executed."""
    out = io.BytesIO()
    files = dict({"package.json": json.dumps(dict({"name": name, "version": version}, **more))}, **files)
    with tarfile.open(fileobj=out, mode="w:gz") as made:
        for path, text in files.items():
            entry = tarfile.TarInfo("package/" + path)
            entry.size, entry.mode = len(text.encode()), 0o755 if "bin/" in path else 0o644
            made.addfile(entry, io.BytesIO(text.encode()))
    return out.getvalue()


def wheel(name, version, files, program=None):
    """A pure wheel; program: NAME=MODULE:FUNCTION."""
    out, info = io.BytesIO(), f"{name.replace('-', '_')}-{version}.dist-info"
    files = dict(files)
    files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    files[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    if program:
        files[f"{info}/entry_points.txt"] = f"[console_scripts]\n{program}\n"
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(out, "w") as made:
        for path, text in files.items():
            made.writestr(path, text)
    return out.getvalue()


class Registry:
    """Use it with `with`. What it has may change meanwhile."""

    def __init__(self):
        self.npm, self.pypi = {}, {}     # NAME: {VERSION: (bytes, integrity, dependencies)}; NAME: {FILE: (bytes, sha256)}
        self.stalls = threading.Event()  # it answers no more
        self.asked = threading.Event()   # somebody did
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):  # noqa: N802
                outer.asked.set()
                if outer.stalls.is_set():
                    outer.over.wait(60)
                    return
                status, kind, body = outer.answer(urllib.parse.unquote(self.path.split("?")[0]))
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.over = threading.Event()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()

    def add_npm(self, name, version, files, dependencies=None, broken=False):
        archive = tarball(name, version, files, **({"dependencies": dependencies} if dependencies else {}))
        said = archive + b"x" if broken else archive
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(said).digest()).decode()
        self.npm.setdefault(name, {})[version] = (archive, integrity, dependencies or {})
        return integrity

    def add_pypi(self, name, version, files, program=None):
        archive = wheel(name, version, files, program)
        digest = hashlib.sha256(archive).hexdigest()
        self.pypi.setdefault(name, {})[f"{name.replace('-', '_')}-{version}-py3-none-any.whl"] = (archive, digest)
        return digest

    def answer(self, path):
        if path.startswith("/simple/"):
            rows = self.pypi.get(path[len("/simple/"):].strip("/"))
            links = "".join(f'<a href="/files/{file}#sha256={digest}">{file}</a>\n' for file, (_, digest) in (rows or {}).items())
            return (200, "text/html", links.encode()) if rows else (404, "text/plain", b"no")
        for rows in self.pypi.values():
            for file, (archive, _) in rows.items():
                if path == f"/files/{file}":
                    return 200, "application/zip", archive
        return self.answer_npm(path.strip("/"))

    def answer_npm(self, path):
        name, _, file = path.partition("/-/")
        rows = self.npm.get(name)
        if not rows:
            return 404, "application/json", b"{}"
        if file:
            return 200, "application/octet-stream", rows[file][0]
        versions = {version: {"name": name, "version": version, "dependencies": needs,
                              "dist": {"tarball": f"{self.url}/{name}/-/{version}", "integrity": integrity}}
                    for version, (_, integrity, needs) in rows.items()}
        return 200, "application/json", json.dumps({"name": name, "versions": versions, "dist-tags": {"latest": max(rows)}}).encode()
