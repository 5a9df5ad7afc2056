"""Plots for the pages: docs/contributing/plots/NAME.svg by gnuplot, from what a part has measured. Without gnuplot,
a word about it."""
import os
import shutil
import statistics
import subprocess

import page

DIRECTORY = f"{page.SOURCE}/docs/contributing/plots"
COLOURS = ("#1f4e79", "#c55a11", "#548235", "#7f6000", "#7030a0", "#00868b", "#a02020", "#606060", "#2e75b6", "#d99694",
           "#92b050", "#404040", "#b07cc6")
STYLE = """set terminal svg size {width},{height} font "Helvetica,13" background "#ffffff"
set output "{path}"
set title "{title}"
set border 3 lc rgb "#808080"
set tics nomirror
set grid ytics lc rgb "#e0e0e0" lt 1
"""


def _quoted(text):
    return str(text).replace("\\", "").replace('"', "'")


def _block(rows):
    return "\n".join(" ".join(str(word) for word in row) for row in rows) + "\ne\n"


def _draw(name, title, commands, width=900, height=480):
    if not shutil.which("gnuplot"):
        print(f"  no plot of {name}: gnuplot is not installed", flush=True)
        return
    os.makedirs(DIRECTORY, exist_ok=True)
    head = STYLE.format(width=width, height=height, path=f"{DIRECTORY}/{name}.svg", title=_quoted(title))
    subprocess.run(["gnuplot"], input=head + commands, text=True, check=True)


def bars(name, title, unit, samples):
    """A bar a name, on a logarithmic scale: the median, and a line from the least to the most. samples: {name: values}"""
    rows = [(len(samples) - 1 - i, f'"{_quoted(label)}"', statistics.median(values), min(values), max(values))
            for i, (label, values) in enumerate(samples.items())]
    least = min(row[3] for row in rows)
    commands = f"""unset key
set grid xtics noytics
set xlabel "{_quoted(unit)}"
set logscale x
set xrange [{least / 3}:{max(row[4] for row in rows) * 4}]
set yrange [-0.6:{len(rows) - 0.4}]
set style fill solid 0.9 noborder
plot "-" using ($3/2):1:($3/2):(0.32):ytic(2) with boxxyerror lc rgb "{COLOURS[0]}", \\
     "-" using 3:1:4:5 with xerrorbars pt -1 lc rgb "#202020", \\
     "-" using ($5*1.15):1:6 with labels left font ",11"
"""
    # A box from next to nothing: a logarithmic axis has no 0.
    commands = commands.replace("($3/2):1:($3/2):(0.32)", f"3:1:({least / 3}):3:($1-0.32):($1+0.32)")
    labelled = [(*row, f'"{page.show(row[2])}"') for row in rows]
    _draw(name, title, commands + _block(rows) + _block(rows) + _block(labelled), height=120 + 26 * len(rows))


def lines(name, title, across, up, series, logarithmic=""):
    """Points joined by lines. series: {name: [(x, y)] or [(x, y, least, most)]}; logarithmic: "x", "y", "xy"."""
    _series(name, title, across, up, series, "linespoints pt 7 ps 0.6",
            f"set logscale {logarithmic}\n" if logarithmic else "")


def steps(name, title, across, up, series, until):
    """What counts up: each series stays as it is until its next point, and at its last until `until`."""
    longer = {label: [*points, (until, points[-1][1])] for label, points in series.items()}
    most = max(number for points in series.values() for _, number in points)
    _series(name, title, across, up, longer, "steps lw 2", f"set yrange [0:{most * 1.05}]\n")


def _series(name, title, across, up, series, style, more):
    plots = ", ".join(f'"-" using 1:2 with {style} lc rgb "{COLOURS[i % len(COLOURS)]}" title "{_quoted(label)}"'
                      for i, label in enumerate(series))
    commands = f'set key outside right\nset xlabel "{_quoted(across)}"\nset ylabel "{_quoted(up)}"\n{more}plot {plots}\n'
    _draw(name, title, commands + "".join(_block(points) for points in series.values()))
