/* harness.c - `sluice harness`: harnesses installed on this node, by a module of the Python package. */
#include "client/cli/command.h"
#include "client/cli/programs/modules.h"

static int run_verb(const struct invocation *in) { return module_exec("sluice.harnesses", in, 0); }

static const struct cmdline_verb verbs[] = {
    {"install", "NAME[@VERSION] ...", run_verb},
    {"list", "[--json]", run_verb},
    {"check", "[NAME ...]", run_verb},
    {"remove", "NAME[@VERSION] ...", run_verb},
};

const struct command command_harness = {
    COMMAND_LINE("harness"),
    .line.verbs = verbs,
    .line.verb_count = ROWS(verbs),
    .line.brief =
        "Installs harnesses on this node, and removes them: programs of others that tasks name as their agents",
    .line.doc =
        "'install' fetches a harness from npm or PyPI into a directory of its own below\n"
        "${SLUICE_CACHE:-${XDG_CACHE_HOME:-~/.cache}/sluice}/harness, once for all rollouts: run workers of the same\n"
        "user find it there when they start, without --harness (docs/harnesses.md). Each archive's digest is compared\n"
        "and recorded; the same version again has the same ones. 'list' prints which there are, and which are\n"
        "installed. 'check' compares what is installed with what was recorded. 'remove' takes a version away, or\n"
        "all of a harness, but none that a run worker holds. All are of the Python package; options of install are\n"
        "'--dir', '--lock' and '--python': 'sluice harness install --help'.\n",
    .line.example = "sluice harness install codex claude-code\n"
                    "sluice harness install codex@0.169.0 --dir /srv/codex\n"
                    "sluice harness check\n"
                    "sluice harness remove codex@0.169.0\n",
    .passes_on = true,
    .run = modules_run,
};
