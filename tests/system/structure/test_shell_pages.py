"""What `man` and shells show of a program is what its --help says: manual pages, and completion of bash and zsh."""
import os
import re
import shlex
import subprocess
import sys
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from harness import BINARY, SLUICE  # noqa: E402
from texts import ROOT, read  # noqa: E402

PROGRAMS = {"broker": "broker", "worker": "workers", "image": "workers", "verify": "workers", "grade": "workers", "simulate": "broker"}
BASH = os.path.join(ROOT, "client", "package", "sluice.bash")
ZSH = os.path.join(ROOT, "client", "package", "_sluice")


def say(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, ""), (command, done)
    return done.stdout


def commands():
    return re.findall(r"^  ([a-z]+) ", say(SLUICE, "--help").split("\nto begin")[0], re.M)


def pages():
    """(words that ask, those asked for by the program itself)"""
    yield from ([SLUICE, command] for command in commands())
    yield from ([os.path.join(BINARY, folder, "sluice-" + name)] for name, folder in PROGRAMS.items())


def options_of(page):
    """Those that have a line of their own."""
    return set(re.findall(r"^\s*(--[a-z][a-z-]*)", page, re.M))


class Manual(unittest.TestCase):
    def test_each_page_has_the_options_of_help_and_no_warning(self):
        seen = 0
        for words in [[SLUICE], *pages()]:
            source = say(*words, "--help-man")
            done = subprocess.run(["groff", "-ww", "-man", "-Tutf8", "-P-cbou"], input=source, capture_output=True, text=True,
                                  timeout=30, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), words)
            told = options_of(done.stdout.replace("\u2212", "-").replace("\u2010\n", ""))
            if words != [SLUICE]:
                seen += len(told)
                self.assertEqual(told, options_of(say(*words, "--help")), words)
            self.assertRegex(source, r'^\.TH SLUICE[A-Z-]* 1 "" "sluice \d')
        self.assertGreater(seen, 150)

    def test_each_program_and_command_has_a_page_that_is_installed(self):
        said = read("client", "package", "CMakeLists.txt")
        listed = re.search(r"foreach\(command (.*?)\)", said).group(1).split() + re.search(r"foreach\(program (broker.*?)\)", said).group(1).split()
        self.assertEqual(sorted(listed), sorted(commands()))


def bash_offers(line):
    """What TAB offers at the end of a line; the programs are those of PATH."""
    words = shlex.split(line) + ([""] if line.endswith(" ") else [])
    script = f"""source {shlex.quote(BASH)}; compopt() {{ :; }}
COMP_WORDS=({' '.join(map(shlex.quote, words))}); COMP_CWORD={len(words) - 1}; _sluice; printf '%s\\n' "${{COMPREPLY[@]}}" """
    return set(filter(None, run_shell("bash", script).split("\n")))


def zsh_offers(line):
    """The same; what zsh's own functions are given is printed."""
    words = shlex.split(line) + ([""] if line.endswith(" ") else [])
    script = f"""words=({' '.join(shlex.quote(word) if word else '""' for word in words)}); CURRENT={len(words)}; PREFIX=$words[CURRENT]
_describe() {{ print -l -- ${{(P)2}} }}; _files() {{ print -- files $1 }}; compadd() {{ shift; print -l -- $@ }}
f() {{ source {shlex.quote(ZSH)} }}; f"""
    lines = run_shell("zsh", "-f", script).split("\n")
    return {re.sub(r":.*", "", offered) for offered in lines if offered and (offered.startswith(words[-1]) or offered.startswith("files"))}


def run_shell(*command):
    path = ":".join([os.path.join(BINARY, folder) for folder in ("client", "broker", "workers")] + [os.environ["PATH"]])
    done = subprocess.run([*command[:-1], "-c", command[-1]], capture_output=True, text=True, timeout=60, check=False,
                          env=dict(os.environ, PATH=path), cwd=os.path.join(ROOT, "docs"))
    assert done.stderr == "", done.stderr
    return done.stdout


class Completion(unittest.TestCase):
    def test_bash_and_zsh_offer_the_options_of_help(self):
        for words in pages():
            line = " ".join([os.path.basename(words[0]), *words[1:]]) + " --"
            told = options_of(say(*words, "--help")) if words != [SLUICE, "doctor"] else {"--json", "--cache", "--sandbox"}
            for offers in (bash_offers(line), zsh_offers(line)):
                self.assertLessEqual(told, offers, line)
                if "doctor" not in line:
                    self.assertEqual(told, offers, line)

    def test_they_offer_commands_words_of_an_option_and_files(self):
        self.assertEqual(bash_offers("sluice "), set(commands()))
        self.assertEqual(zsh_offers("sluice "), set(commands()))
        for offers in (bash_offers, zsh_offers):
            self.assertEqual(offers("sluice su"), {"submit"})
            self.assertEqual(offers("sluice engine "), {"add", "check", "drain", "list", "remove"})
            self.assertEqual(offers("sluice worker "), {"init", "run", "eval"})
            self.assertEqual(offers("sluice-broker --durability "), {"full", "process", "none"})
        self.assertEqual(bash_offers("sluice submit clu"), {"cluster.md"})
        self.assertEqual(bash_offers("sluice up --data con"), {"contributing"})
        self.assertEqual(bash_offers("sluice-worker --key tok"), {"tokens.md"})
        self.assertEqual(bash_offers("sluice up --engine "), set())
        self.assertEqual(zsh_offers("sluice submit "), {"files"})
        self.assertEqual(zsh_offers("sluice up --data "), {"files -/"})


if __name__ == "__main__":
    unittest.main()
