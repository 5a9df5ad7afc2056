"""Every .c and .h is laid out as .clang-format says. `bash tests/format.sh` lays them out so."""
import re
import shutil
import subprocess
import sys
import unittest

from texts import C, PROGRAMS, ROOT, paths, read

MAJOR = "14"  # Debian 12's; other versions break lines elsewhere


def formatter():
    """clang-format of that version, or None."""
    for name in ("clang-format-" + MAJOR, "clang-format"):
        path = shutil.which(name)
        if path and re.search(rf"version {MAJOR}\.", subprocess.check_output([path, "--version"], text=True)):
            return path
    return None


class Format(unittest.TestCase):
    def test_each_source_is_as_clang_format_lays_it_out(self):
        run = subprocess.run([formatter(), "--dry-run", "--Werror", *paths(*PROGRAMS, "tests", "bench")], text=True, stderr=subprocess.PIPE)
        wrong = sorted(set(re.findall(rf"^{re.escape(ROOT)}/*(\S+?):\d+:\d+: error", run.stderr, re.M)))
        self.assertEqual((run.returncode, wrong), (0, []), "`bash tests/format.sh` lays them out\n" + run.stderr[:4000])

    def test_no_line_is_over_the_columns(self):
        """clang-format breaks code there, and leaves comments as they are."""
        columns = int(re.search(r"^ColumnLimit: (\d+)$", read(".clang-format"), re.M).group(1))
        self.assertEqual([(path, number + 1) for path in paths(*PROGRAMS, "tests", "bench", ends=(*C, ".def"))
                          for number, line in enumerate(read(path).splitlines()) if len(line) > columns], [])

    def test_a_source_that_is_not_laid_out_is_found(self):
        run = subprocess.run([formatter(), "--dry-run", "--Werror", f"--assume-filename={ROOT}/broker/x.c"],
                             input="int  f( void ) { return 1 ; }\n", text=True, stderr=subprocess.PIPE)
        self.assertEqual(run.returncode, 1)


if __name__ == "__main__":
    if not formatter():
        print(f"skipped: there is no clang-format {MAJOR} here (Debian 12's package clang-format)")
        sys.exit(77)
    unittest.main()
