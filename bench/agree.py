"""python3 bench/agree.py BEFORE.md AFTER.md [PART...]

Compares two docs/contributing/benchmarks.md: which figures of AFTER have a spread that does not meet the
one they had in BEFORE.
"""
import re
import sys

PART = re.compile(r"<!-- (\w+) -->")
NUMBER = r"(-?[\d.,]+)"
IN_COLUMNS = re.compile(rf"^\| ([^|]+) \| {NUMBER} \| {NUMBER} to {NUMBER} \|$")
IN_CELL = re.compile(rf"{NUMBER} \({NUMBER} to {NUMBER}\)")


def figures(path):
    """{(part, name): (median, least, most)} of all tables."""
    found, part = {}, None
    with open(path, encoding="utf-8") as file:
        for line in file:
            part = match.group(1) if (match := PART.match(line)) else part
            if match := IN_COLUMNS.match(line.rstrip()):
                found[part, match.group(1)] = numbers(match.groups()[1:])
            elif line.startswith("| "):
                name = line.split("|")[1].strip()
                for column, cell in enumerate(IN_CELL.finditer(line)):
                    found[part, f"{name}, {column + 1}"] = numbers(cell.groups())
    return found


def numbers(words):
    return tuple(float(word.replace(",", "")) for word in words)


def main():
    if sys.argv[1:2] in (["-h"], ["--help"]):
        print(__doc__, end="")
        return
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    before, after = figures(sys.argv[1]), figures(sys.argv[2])
    for part in sys.argv[3:] or dict.fromkeys(part for part, _ in after):
        both = [name for name in after if name[0] == part and name in before]
        apart = [name for name in both if after[name][2] < before[name][1] or after[name][1] > before[name][2]]
        print(f"{part}: of {len(both)} figures the spreads of {len(both) - len(apart)} meet")
        for name in apart:
            print(f"  {name[1]}: {before[name][0]:g} ({before[name][1]:g} to {before[name][2]:g}), then "
                  f"{after[name][0]:g} ({after[name][1]:g} to {after[name][2]:g})")


if __name__ == "__main__":
    main()
