/* program.h - sluice-simulate: its command line, and what it prints. */
#ifndef SLUICE_BROKER_SIMULATE_PROGRAM_H
#define SLUICE_BROKER_SIMULATE_PROGRAM_H

#include "broker/simulate/simulate.h"
#include "common/cmdline/option.h"

enum { SIMULATE_FAILED = 1, SIMULATE_USAGE = 2 };

struct simulate_options {
#define OPTION OPTION_FIELD
#include "broker/simulate/options.def"
#undef OPTION
};

/* -1 to go on, else the exit status to end with, after what was to be said. What follows from others is filled in. */
int simulate_options_begin(int argc, char **argv, struct simulate_options *ret);
/* What it says of batches; false: --solved is no list of two numbers each. */
bool simulate_sampling(const struct simulate_options *options, struct sampling *ret);
/* The whole program; its exit status. */
int simulate_main(int argc, char **argv);

#endif
