/*
 * switch.h - from one stack to another within a thread, which is what fibers are made of. What a called function must
 * leave as it was goes along: registers, and how floating point rounds and traps. The signal mask stays the thread's,
 * so that a switch is no system call. Where the registers of a machine are not known here, ucontext's switch is taken.
 */
#ifndef SLUICE_WORKERS_RUNTIME_SWITCH_H
#define SLUICE_WORKERS_RUNTIME_SWITCH_H

#include <stddef.h>

#if (defined(__x86_64__) && defined(__LP64__)) || defined(__aarch64__)
/* A flow of control that is not on: the top of its stack, where its registers lie. */
struct switch_point {
    void *top;
};
#else
#define SWITCH_BY_UCONTEXT 1
#include <ucontext.h>
struct switch_point {
    ucontext_t context;
};
#endif

/* The first switch to it calls `run` on that stack, which must never return. */
void switch_make(struct switch_point *ret, void *stack, size_t size, void (*run)(void));
/* Returns when something switches to `from` again. */
void switch_to(struct switch_point *from, const struct switch_point *to);
/* Below it nothing of its stack is in use while it is not on; NULL: that is not known. */
void *switch_top(const struct switch_point *point);

#endif
