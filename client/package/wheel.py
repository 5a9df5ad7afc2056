"""python3 wheel.py CLIENT.whl PREFIX OUT: a wheel of the client and of the programs that are installed below PREFIX.

The programs go to where pip puts a distribution's commands, their manual pages and completion to the prefix that pip
installs to. Its tag says Linux; auditwheel says which.
"""
import os
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile


def run(*arguments):
    subprocess.run([sys.executable, "-m", "wheel", *arguments], check=True)


def add_programs(tree, prefix):
    name = next(entry for entry in os.listdir(tree) if entry.endswith(".dist-info"))
    data = os.path.join(tree, name[:-len(".dist-info")] + ".data")
    shutil.copytree(os.path.join(prefix, "bin"), os.path.join(data, "scripts"))
    shutil.copytree(os.path.join(prefix, "share"), os.path.join(data, "data", "share"))
    shutil.copytree(os.path.join(prefix, "lib"), os.path.join(data, "data", "lib"))
    for program in os.listdir(os.path.join(data, "scripts")):
        os.chmod(os.path.join(data, "scripts", program), stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH)
    path = os.path.join(tree, name, "WHEEL")
    with open(path, encoding="utf-8") as file:
        said = file.read()
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    said = said.replace("Root-Is-Purelib: true", "Root-Is-Purelib: false").replace("py3-none-any", f"py3-none-{platform}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(said)


def main(client, prefix, out):
    os.makedirs(out, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        run("unpack", "--dest", work, client)
        tree = os.path.join(work, os.listdir(work)[0])
        add_programs(tree, prefix)
        run("pack", "--dest-dir", out, tree)


if __name__ == "__main__":
    main(*sys.argv[1:])
