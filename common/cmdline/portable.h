/*
 * portable.h - what a program does first that was built to run on any distribution (SLUICE_PORTABLE): it has libc and
 * OpenSSL inside, so what a distribution sets up for its own is found here. In any other build, nothing.
 */
#ifndef SLUICE_COMMON_CMDLINE_PORTABLE_H
#define SLUICE_COMMON_CMDLINE_PORTABLE_H

/* Before any thread, and before anything is looked up. */
void portable_begin(void);

#endif
