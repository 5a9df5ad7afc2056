/* program.h - sluice-broker as a function, so that tests run what users run. */
#ifndef SLUICE_BROKER_PROGRAM_H
#define SLUICE_BROKER_PROGRAM_H

/*
 * The exit status: 0 after SIGTERM or SIGINT, 1 when it could not start or go on, 2 for usage,
 * 75 when the disk was full (make space, start it again), 76 when the ledger is damaged (to
 * start it again as it is helps nothing).
 */
int program_main(int argc, char **argv);

#endif
