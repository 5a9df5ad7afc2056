"""Where the package is: the sources. Imported before it."""
import os
import sys

SOURCE = os.environ.get("SLUICE_SOURCE_DIR") or os.path.abspath(os.path.join(os.path.dirname(__file__), *[".."] * 3))
sys.path.insert(0, os.path.join(SOURCE, "client", "python"))

try:
    import sluice  # noqa: F401
except ImportError as missing:
    print(f"skipped: {missing}; .ci/packages.sh installs what the Python client needs")
    sys.exit(77)
