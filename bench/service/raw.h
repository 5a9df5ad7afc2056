/*
 * raw.h - what the service's programs have of libzmq and the kernel: sockets, a context for thousands of them, a timer
 * that paces, and the end where one of these fails.
 */
#ifndef SLUICE_BENCH_SERVICE_RAW_H
#define SLUICE_BENCH_SERVICE_RAW_H

/* Ends the program: what went wrong, and what libzmq or the system says of it. */
_Noreturn void raw_die(const char *what);
/* With room for as many sockets as libzmq and the kernel allow. */
void *raw_context(void);
/* Of libzmq's own bounds; it waits for nobody when it is closed. */
void *raw_socket(void *context, int type);
/* The same without bounds. */
void *raw_unbounded_socket(void *context, int type);
/* Readable `rate` times a second. */
int raw_timer(long rate);

#endif
