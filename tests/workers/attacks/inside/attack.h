/*
 * attack.h - a program that is run inside sandboxes by test_attacks*.c: each of its words attempts
 * something and says on one line what came of it: the name of an errno, or "done". What is right is
 * in the tests' tables.
 */
#ifndef SLUICE_TESTS_WORKERS_ATTACKS_INSIDE_ATTACK_H
#define SLUICE_TESTS_WORKERS_ATTACKS_INSIDE_ATTACK_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void say(const char *name, long result)
{
    printf("%s %s\n", name, result < 0 ? strerrorname_np(errno) : "done");
    fflush(stdout);
}

/* Attempts it once and says so. */
#define TRY(name, attempt)                                                                                             \
    do {                                                                                                               \
        errno = 0;                                                                                                     \
        say(name, (long)(attempt));                                                                                    \
    } while (0)

void attack_calls(void);
void attack_sockets(char **arguments); /* abstract name, TCP port, Unix path of the host */
void attack_proc(char **arguments);    /* a pid of the host's */
void attack_limits(void);
void attack_serve(void);
void attack_neighbour(char **arguments); /* of what attack_serve said, and the port of its grant */
void attack_outside(char **pids);

void attack_memory(const char *kind); /* until it is killed */
void attack_processes(const char *kind);
void attack_files(const char *kind);
void attack_kernel(const char *kind); /* holds what it took until it is killed */

#endif
