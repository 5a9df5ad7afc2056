/*
 * socket_memory.h - what the sockets of one network namespace hold of the kernel's memory: data that nobody has read
 * or taken yet, which is in no process's account. From two descriptors that stay with the namespace they were opened
 * in.
 */
#ifndef SLUICE_WORKERS_SANDBOX_INIT_SOCKET_MEMORY_H
#define SLUICE_WORKERS_SANDBOX_INIT_SOCKET_MEMORY_H

#include <stdint.h>

/* So many sockets are not worth a look: at most some 4 MiB, as those inside cannot make buffers larger
 * (seccomp_rules.c). */
enum { SOCKET_MEMORY_FROM = 16 };

/* A socket that asks about the sockets of this process's namespace; -1, errno. */
int socket_memory_open(void);
/* `counts`: that namespace's /proc/net/sockstat. Some 5 us while there are few sockets; 0 where the kernel does not
 * tell. */
uint64_t socket_memory_kib(int counts, int ask);

#endif
