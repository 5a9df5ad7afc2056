"""Tools through the whole service: a replay, an agent that calls functions, a web search, and what a task may not have."""
import http.server
import json
import os
import sys
import threading
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from harness import Engine, Service, check_trajectories  # noqa: E402


def call(tool, **arguments):
    return {"tool": tool, "arguments": arguments}


REPLAY = {
    "task": "replay", "setup": ["printf 'def add(a, b):\\n    return a - b\\n' > add.py"],
    "agent": {"kind": "replay", "script": [
        call("think", thought="It subtracts."),
        call("edit", command="view", path="add.py"),
        call("edit", command="str_replace", path="add.py", old_str="a - b", new_str="a + b"),
        call("bash", command="cd /tmp; echo $PWD; test -t 1 || echo no terminal"),
        call("bash", command="test -t 1 && echo $PWD", tty=True),
        call("edit", command="undo_edit", path="other.py"),
        call("bash", command="cat /workspace/add.py; exit 7"),
        call("submit", answer="fixed"),
        call("bash", command="rm /workspace/add.py")]},
    "eval": {"kind": "command", "command": "python3 -c 'import add; assert add.add(1, 2) == 3'"}}

REPLIES = [
    'I look.\n<tool_call>\n{"name": "edit", "arguments": {"command": "create", "path": "a.txt", "file_text": "hi\\n"}}\n</tool_call>'
    '\n<tool_call>\n{"name": "bash", "arguments": {"command": "cat a.txt"}}\n</tool_call>',
    '<tool_call>\n{"name": "submit", "arguments": {"answer": "\\\\boxed{2}"}}\n</tool_call>']
CALLS = {"task": "calls", "prompt": "What is 1+1?", "agent": {"kind": "tools"}, "eval": {"kind": "math", "answer": "2"}}
SEARCH = {"task": "search", "agent": {"kind": "replay", "script": [call("search", query="sluice")]}}


HTTP = "printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3 && tail -n 1 <&3"
GRANTED = {
    "task": "granted", "network": ["web"],
    "agent": {"kind": "replay", "tools": ["bash", "ipython"], "script": [
        call("bash", command="exec 3<>/dev/tcp/${SLUICE_GRANT_WEB/://} && " + HTTP),
        call("bash", command="echo $SLUICE_GRANT_WEB"),
        call("ipython", code="import os\nprint(os.environ['SLUICE_GRANT_WEB'])"),
        call("ipython", code="import urllib.request\n"
             "print(urllib.request.urlopen('http://' + os.environ['SLUICE_GRANT_WEB'] + '/', timeout=30).read().decode())")]},
    "eval": {"kind": "command", "command": "test -z $SLUICE_GRANT_WEB"}}


class SearchServer:
    """A SearXNG of one answer."""

    def __enter__(self):
        asked = self.asked = []
        self.body = json.dumps({"query": "sluice", "results": [
            {"url": "https://example.org/", "title": "A gate", "content": "for water"}]})
        answer = self.body.encode()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append((self.path, self.headers.get("Authorization")))
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Tools(unittest.TestCase):
    def test_a_replay_needs_no_engine_and_leaves_what_its_calls_did(self):
        with Service() as service:
            trajectories = service.submit([REPLAY], "replay", samples=2)
            check_trajectories(self, trajectories, 1, 2)
            for t in trajectories:
                self.assertEqual((t["outcome"], t["reward"]), ("ok", 1.0), t)
                said = [(m["tool"].split(":")[0], m["exit_status"], m["content"]) for m in t["messages"] if m["role"] == "tool"]
                self.assertEqual([name for name, _, _ in said],
                                 ["think", "edit", "edit", "bash", "bash", "edit", "bash", "submit"])
                self.assertEqual(said[1][2], "     1\tdef add(a, b):\n     2\t    return a - b\n")
                self.assertEqual(said[3][2], "/tmp\nno terminal\n")
                self.assertEqual(said[4][2], "/tmp\n")
                self.assertEqual(said[5][1:], (1, "other.py: there is no edit to undo."))
                self.assertEqual(said[6][1], 7)
                self.assertIn("return a + b\n", said[6][2])

    def test_an_agent_calls_functions_and_its_answer_is_what_it_submits(self):
        script = {"context": 32768, "rules": [{"path": "/completion", "replies": REPLIES}]}
        with Engine(script) as engine, Service(engines=[engine.url]) as service:
            trajectories = service.submit([CALLS], "calls", samples=2)
            check_trajectories(self, trajectories, 1, 2)
            for t in trajectories:
                self.assertEqual((t["outcome"], t["reward"]), ("ok", 1.0), t)
                self.assertEqual([m["content"] for m in t["messages"] if m["role"] == "tool"],
                                 ["a.txt was created: 1 lines.", "hi\n", "Submitted."])
                self.assertEqual([turn["role"] for turn in t["traces"][0]["turns"]],
                                 ["prompt", "assistant", "user", "assistant"])

    def test_a_search_is_asked_by_the_worker_and_its_key_is_nowhere(self):
        with SearchServer() as search, Service(options=["--search", "searxng=" + search.url,
                                                        "--search-key", self.key_file()]) as service:
            t, = service.submit([SEARCH], "search", samples=1)
            self.assertEqual(t["outcome"], "ok", t)
            self.assertEqual(t["messages"][-1]["content"], "1. A gate\nhttps://example.org/\nfor water\n")
            self.assertEqual(search.asked, [("/search?format=json&q=sluice", "Bearer tvly-secret")])
            self.assertNotIn("tvly-secret", json.dumps(t) + service.read_log())

    def test_a_search_without_a_service_is_infra_and_says_so(self):
        task = dict(SEARCH, limits={"total_s": 20})
        with Service() as service:
            waiting, out = service.submit([task], "none", samples=1, wait=False)
            t, = service.finish(waiting, out, timeout=120)
            self.assertEqual(t["outcome"], "infra", t)
            self.assertIn("no web search", t["detail"])

    def test_a_granted_endpoint_is_reached_by_commands_and_cells_and_only_by_name(self):
        with SearchServer() as server, Service(options=["--grant", f"web=tcp:127.0.0.1:{server.port}"]) as service:
            t, = service.submit([GRANTED], "granted", samples=1)
            self.assertEqual((t["outcome"], t["reward"]), ("ok", 1.0), t)
            by_bash, bash_has, cell_has, by_cell = [m["content"] for m in t["messages"] if m["role"] == "tool"]
            self.assertEqual((by_bash.strip(), by_cell.strip()), (server.body, server.body))
            self.assertEqual((bash_has, cell_has), (f"127.0.0.1:{server.port}\n",) * 2)
            self.assertEqual(len(server.asked), 2)

            without = dict(GRANTED, task="without", network=[], agent={"kind": "replay", "script": [
                call("bash", command=f"echo [$SLUICE_GRANT_WEB]; exec 3<>/dev/tcp/127.0.0.1/{server.port} && " + HTTP)]})
            t, = service.submit([without], "without", samples=1)
            message, = [m for m in t["messages"] if m["role"] == "tool"]
            self.assertTrue(message["content"].startswith("[]\n"), t)
            self.assertIn("Connection refused", message["content"])
            self.assertEqual(len(server.asked), 2)

            t, = service.submit([dict(GRANTED, task="other", network=["db"])], "other", samples=1)
            self.assertEqual(t["outcome"], "task", t)
            self.assertIn('there is no network grant "db"; this worker has: web', t["detail"])

    def key_file(self):
        path = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"sluice-search-key-{os.getpid()}")
        with open(path, "w", encoding="utf-8") as file:
            file.write("tvly-secret\n")
        self.addCleanup(os.unlink, path)
        return path


if __name__ == "__main__":
    unittest.main(verbosity=2)
