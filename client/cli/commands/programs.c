/* programs.c - the commands that are programs of their own: found where this one lies, and become. */
#include <string.h>

#include "client/cli/command.h"
#include "client/cli/connect.h"
#include "client/cli/programs/siblings.h"
#include "common/cmdline/help.h"
#include "common/cmdline/manual.h"

static int run_broker(const struct invocation *in) { return exec_sibling(in, "sluice-broker", "broker"); }

static int run_worker(const struct invocation *in) { return exec_sibling(in, "sluice-worker", "workers"); }

static int run_gateway(const struct invocation *in) { return exec_sibling(in, "sluice-gateway", "client"); }

static int run_image(const struct invocation *in) { return exec_sibling(in, "sluice-image", "workers"); }

static int run_verify(const struct invocation *in) { return exec_sibling(in, "sluice-verify", "workers"); }

static int run_simulate(const struct invocation *in) { return exec_sibling(in, "sluice-simulate", "broker"); }

static int run_doctor(const struct invocation *in)
{
    char *arguments[16] = {(char *)(uintptr_t) "--doctor"};
    struct invocation with = *in;
    for (size_t i = 0; i < in->argument_count; i++)
        if (strcmp(in->arguments[i], "--help") == 0) {
            cmdline_help(&in->command->line, stdout); /* the worker's would tell of workers */
            return EXITS_OK;
        } else if (strcmp(in->arguments[i], "--help-man") == 0) {
            cmdline_manual(&in->command->line, stdout);
            return EXITS_OK;
        }
    if (in->argument_count > 14)
        return cli_usage(in->command, "too many arguments");
    memcpy(arguments + 1, in->arguments, in->argument_count * sizeof(*arguments));
    with.arguments = arguments;
    with.argument_count = in->argument_count + 1;
    return exec_sibling(&with, "sluice-worker", "workers");
}

const struct command command_doctor = {
    COMMAND_LINE("doctor"),
    .line.arguments = "[--json] [--cache DIR] [--sandbox TIER]",
    .line.brief = "Tells what kind of sandbox this machine allows, and how to get a better one",
    .line.doc = "Tries everything that a sandbox needs, makes one, and names the cure for what is "
                "refused, as\n"
                "commands for the administrator; docs/sandbox.md tells of the tiers. Needs no "
                "broker. Exits 0 if\n"
                "all is well, 1 if sandboxes work but of a weaker tier or near a low limit, 2 if "
                "there can be none.\n",
    .line.example = "sluice doctor --cache /var/tmp/sluice\n",
    .passes_on = true,
    .run = run_doctor,
};

const struct command command_verify = {
    COMMAND_LINE("verify"),
    .line.arguments = "TRAJECTORIES --engine URL ...",
    .line.brief = "Compares trajectories with what an engine says of their tokens (the program "
                  "sluice-verify)",
    .line.doc = "Every sampled token is scored anew; masks, counts and the joints between turns "
                "are checked;\n"
                "docs/verify.md says more. Needs no broker. All that follows goes to "
                "sluice-verify; 'sluice verify --help' is\n"
                "its help.\n",
    .line.example = "sluice watch train --json --timeout 1s > train.jsonl\n"
                    "sluice verify train.jsonl --engine http://127.0.0.1:8080 --plot train.svg\n",
    .passes_on = true,
    .run = run_verify,
};

const struct command command_simulate = {
    COMMAND_LINE("simulate"),
    .line.arguments = "[--engines E] [--tokens-per-second T] [--nodes N] [--slots S] [--tasks WHAT] ...",
    .line.brief = "Says what a fleet would do, before there is one (the program sluice-simulate)",
    .line.doc = "Rollouts an hour, how busy each part is, how long jobs wait, what the bottleneck "
                "is and what to add:\n"
                "the broker's own scheduling with a made-up clock, so a thousand nodes take "
                "seconds; docs/capacity.md says\n"
                "more. Needs no broker. All that follows goes to sluice-simulate; 'sluice simulate "
                "--help' is its help.\n",
    .line.example = "sluice simulate --engines 8 --tokens-per-second 4000 --nodes 16 --slots 64 --tasks swe\n"
                    "sluice simulate --engines 2 --tasks trajectories.jsonl --per-hour 500 --json\n",
    .passes_on = true,
    .run = run_simulate,
};

const struct command command_broker = {
    COMMAND_LINE("broker"),
    .line.arguments = "...",
    .line.brief = "Runs a broker alone (the program sluice-broker)",
    .line.doc = "For a broker on a node of its own; 'sluice up' starts one with workers beside it. "
                "All that\n"
                "follows goes to sluice-broker; 'sluice broker --help' is its help.\n",
    .line.example = "sluice broker --keys keys --bind tcp://10.0.0.1 --data /var/lib/sluice "
                    "--store /shared/sluice/store\n",
    .passes_on = true,
    .run = run_broker,
};

const struct command command_worker = {
    COMMAND_LINE("worker"),
    .line.arguments = "init|run|eval ...",
    .line.brief = "Runs one worker of a stage (the program sluice-worker)",
    .line.doc = "For workers on other nodes than the broker's, by hand or from a batch system. All "
                "that follows\n"
                "goes to sluice-worker; 'sluice worker --help' is its help.\n",
    .line.example = "sluice worker run --broker tcp://10.0.0.1:5750 --key node7.key --slots 64 \\\n"
                    "    --store /shared/sluice/store --cache /var/tmp/sluice\n",
    .passes_on = true,
    .run = run_worker,
};

const struct command command_gateway = {
    COMMAND_LINE("gateway"),
    .line.arguments = "...",
    .line.brief = "Speaks HTTP for a broker (the program sluice-gateway)",
    .line.doc = "A REST API, the page, metrics, and the APIs of other systems; docs/gateway.md says more. All that\n"
                "follows goes to sluice-gateway; 'sluice gateway --help' is its help.\n",
    .line.example = "sluice gateway --listen 5780\n"
                    "curl http://127.0.0.1:5780/api/v1/status\n",
    .passes_on = true,
    .run = run_gateway,
};

const struct command command_image = {
    COMMAND_LINE("image"),
    .line.arguments = "inspect|prepare|list|prune ...",
    .line.brief = "Looks at images and prepares them (the program sluice-image)",
    .line.doc = "What a task's `image` may be: a directory, a SIF or SquashFS file, an OCI image "
                "layout. Workers\n"
                "prepare them by themselves; docs/images.md says more. All that follows goes to "
                "sluice-image;\n"
                "'sluice image --help' is its help.\n",
    .line.example = "sluice image inspect debian.sif\n"
                    "sluice image prepare /images/debian.sif --cache /var/tmp/sluice\n",
    .passes_on = true,
    .run = run_image,
};
