/* program.h - sluice-simulate: its command line, and what it prints. */
#ifndef SLUICE_BROKER_SIMULATE_PROGRAM_H
#define SLUICE_BROKER_SIMULATE_PROGRAM_H

#include <stdbool.h>

#include "broker/simulate/simulate.h"

enum { SIMULATE_FAILED = 1, SIMULATE_USAGE = 2 };

struct simulate_options {
#define NUMBER(name, word, argument, preset, least, most, doc) uint64_t name;
#define TEXT(name, word, argument, preset, doc) const char *name;
#define FLAG(name, word, doc) bool name;
#include "broker/simulate/options.def"
#undef NUMBER
#undef TEXT
#undef FLAG
};

/* 0, or SIMULATE_USAGE after a sentence on stderr. What follows from others is filled in. */
int simulate_options_read(int argc, char **argv, struct simulate_options *ret);
void simulate_options_help(void);
/* The whole program; its exit status. */
int simulate_main(int argc, char **argv);

#endif
