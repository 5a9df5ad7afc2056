"""The walls of the house: dependencies point one way, the core does no I/O, files stay readable."""
import os
import re
import sys
import unittest

from texts import ROOT, paths, read

MAY_INCLUDE = {
    "common": {"common"},
    "schemas": {"schemas", "common"},
    "broker": {"broker", "schemas", "common"},
    "workers": {"workers", "schemas", "common"},
    "client": {"client", "schemas", "common"},
}
# The folders of workers/sandbox, lowest first ("": the worker's own side), each with those that it may include beside itself.
SANDBOX_MAY_INCLUDE = {
    "proto": set(),
    "cgroup": {"proto"},
    "container/seccomp": set(),
    "container": {"proto", "cgroup", "container/seccomp"},
    "init/services": {"proto", "container"},
    "init": {"proto", "cgroup", "container", "init/services"},
    "backends/fuse": {"proto", "container"},
    "backends/landlock": {"proto", "container", "container/seccomp"},
    "backends/apptainer": {"proto", "container", "container/seccomp", "init", "backends/landlock"},
    "backends": {"proto", "container", "init", "backends/landlock", "backends/apptainer"},
    "spawner": {"proto", "cgroup", "container", "container/seccomp", "init", "backends/fuse", "backends/landlock", "backends/apptainer"},
    "embedded": set(),
    "": {"proto", "cgroup", "container", "init", "spawner", "embedded"},
    "probe": {"", "proto", "cgroup", "container", "init", "backends/apptainer", "embedded"},
}
# Folder -> the other folders of its program that its own files may include; the folders below it have rows of their own.
ENGINE_SERVER = {"workers/runtime", "workers/tokenizer"}
ENGINE_TEMPLATE = ENGINE_SERVER | {"workers/engines/server"}
ENGINE_DIALECTS = ENGINE_TEMPLATE | {"workers/engines/template", "workers/engines/models"}
JINJA = {"workers/engines/jinja/values"}
ENGINES = ENGINE_DIALECTS | {"workers/engines/dialects"}
TOOLS = {"workers/files", "workers/inside", "workers/runtime", "workers/sandbox", "workers/tools"}
INNER_MAY_INCLUDE = {
    "common/loop": {"common/base"},
    "common/http": {"common/base", "common/loop"},
    "workers/runtime": set(),
    "workers/tokenizer": set(),
    "workers/engines/jinja/values": set(),
    "workers/engines/jinja/reading": JINJA,
    "workers/engines/jinja/calls": JINJA,
    "workers/engines/jinja": JINJA | {"workers/engines/jinja/reading", "workers/engines/jinja/calls"},
    "workers/engines/models": {"workers/engines/jinja", "workers/tokenizer"},
    "workers/engines/server": ENGINE_SERVER,
    "workers/engines/template": ENGINE_TEMPLATE,
    "workers/engines/dialects": ENGINE_DIALECTS,
    "workers/engines/dialects/generate": ENGINES,
    "workers/engines/dialects/llama": ENGINES,
    "workers/engines/dialects/sglang": ENGINES,
    "workers/engines/dialects/vllm": ENGINES,
    "workers/engines": ENGINES,
    "workers/engines/check": ENGINES | {"workers/engines"},
    "workers/evaluators": {"workers/files", "workers/runtime", "workers/jobs", "workers/stages/sandbox"},
    "workers/evaluators/math/parse": {"workers/evaluators/math"},
    "workers/evaluators/math/compare": {"workers/evaluators/math", "workers/evaluators/math/parse"},
    "workers/evaluators/math": {"workers/evaluators", "workers/evaluators/math/compare", "workers/evaluators/math/parse"},
    "workers/evaluators/code": {"workers/evaluators", "workers/inside", "workers/runtime", "workers/sandbox", "workers/stages/sandbox"},
    "workers/handlers/wire": {"workers/runtime"},
    "workers/handlers/processes": {"workers/files", "workers/handlers/wire", "workers/runtime", "workers/sandbox", "workers/sandbox/embedded"},
    "workers/handlers": {"workers/handlers/processes", "workers/handlers/wire", "workers/runtime", "workers/sandbox/embedded"},
    "workers/live": {"workers/engines/server", "workers/runtime"},
    "workers/inside": {"workers/runtime", "workers/sandbox"},
    "workers/agents/proxy/dialects": {"workers/agents/proxy"},
    "workers/agents/proxy/hooks": {"workers/agents", "workers/agents/formats", "workers/agents/proxy", "workers/agents/proxy/dialects"},
    "workers/agents/harnesses": {"workers/images", "workers/inside"},
    "workers/agents/proxy/traces": {"workers/agents/proxy"},
    "workers/agents/proxy": {"workers/agents", "workers/agents/conversation", "workers/agents/formats", "workers/agents/harnesses", "workers/agents/kinds",
                             "workers/agents/proxy/dialects", "workers/agents/proxy/hooks", "workers/agents/proxy/http", "workers/agents/proxy/traces",
                             "workers/engines", "workers/engines/server", "workers/files", "workers/live",
                             "workers/runtime", "workers/sandbox", "workers/tools"},
    "workers/agents/proxy/http": {"workers/agents/proxy", "workers/agents/proxy/dialects", "workers/runtime"},
    "workers/agents/sessions": {"workers/agents", "workers/agents/kinds", "workers/agents/proxy/http", "workers/jobs", "workers/runtime"},
    "client/trace": {"client"},
    "client/cli/top": {"client", "client/cli", "client/cli/print", "client/json"},
    "client/cli/trace": {"client", "client/cli", "client/trace"},
    "workers/tools": TOOLS,
    "workers/tools/bash": TOOLS,
    "workers/tools/edit": TOOLS,
    "workers/tools/ipython": TOOLS,
    "workers/tools/search": TOOLS,
}
CORE_MAY_NOT = re.compile(r'^#include\s*[<"](?:zmq|czmq|sqlite3|time|unistd|poll|fcntl|pthread|signal|sys/|common/base/clock)', re.M)


def included(path):
    """The folders of the files of ours that it includes, by their paths from the root."""
    return re.findall(r'^#include\s+"([^"\n]+)/[^"/\n]+"', read(path), re.M)


class Layering(unittest.TestCase):
    def test_each_folder_includes_only_what_it_stands_on(self):
        seen = 0
        for folder, allowed in MAY_INCLUDE.items():
            for path in paths(folder):
                seen += 1
                for other in included(path):
                    program = other.split("/")[0]
                    if program in MAY_INCLUDE:
                        self.assertIn(program, allowed, f"{path}: {other}")
        self.assertGreater(seen, 20)

    def test_the_folders_of_the_sandbox_include_only_lower_ones(self):
        lower = set()
        for folder, allowed in SANDBOX_MAY_INCLUDE.items():
            self.assertLessEqual(allowed, lower, f"{folder!r} may include what is not below it")
            lower.add(folder)
        top, seen = os.path.join(ROOT, "workers", "sandbox"), set()
        for path in paths("workers/sandbox"):
            folder = os.path.relpath(path, top).rpartition(os.sep)[0]
            self.assertIn(folder, SANDBOX_MAY_INCLUDE, path)
            seen.add(folder)
            for other in included(path):
                if f"{other}/".startswith("workers/sandbox/"):
                    self.assertIn(other[len("workers/sandbox/"):], SANDBOX_MAY_INCLUDE[folder] | {folder}, path)
        self.assertEqual(seen, set(SANDBOX_MAY_INCLUDE))

    def test_inside_a_program_each_folder_includes_only_what_it_stands_on(self):
        for folder, allowed in INNER_MAY_INCLUDE.items():
            own = [path for path in paths(folder) if os.path.dirname(path) == os.path.join(ROOT, folder)]
            self.assertGreater(len(own), 0, folder)
            for path in own:
                for other in included(path):
                    if other != folder and other.startswith(folder.split("/")[0] + "/"):
                        self.assertIn(other, allowed, path)

    def test_the_core_does_no_io_and_asks_no_clock(self):
        core = list(paths("broker/core"))
        self.assertGreater(len(core), 2)
        for path in core:
            self.assertEqual(CORE_MAY_NOT.findall(read(path)), [], path)

    def test_a_bound_of_a_message_is_not_said_again(self):
        """MESSAGE_MAX (schemas/messages/message_max.h) makes constants of the table's bounds."""
        for folder in MAY_INCLUDE:
            for path in paths(folder):
                self.assertFalse("as in messages.def" in read(path), path)

    def test_no_source_file_is_longer_than_500_lines(self):
        for folder in MAY_INCLUDE:
            for path in paths(folder):
                self.assertLessEqual(read(path).count("\n"), 500, path)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
