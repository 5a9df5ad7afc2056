/*
 * cleanup.h - what a scope made, the scope unmakes: AUTO_FREE char *s = ...;
 * hand the value on with take_ptr(&s), which leaves NULL behind.
 */
#ifndef SLUICE_COMMON_BASE_CLEANUP_H
#define SLUICE_COMMON_BASE_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/buffer.h"

static inline void cleanup_free(void *p) { free(*(void **)p); }
static inline void cleanup_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}
static inline void cleanup_fclose(FILE **file)
{
    if (*file)
        fclose(*file);
}

#define AUTO_FREE __attribute__((cleanup(cleanup_free)))
#define AUTO_CLOSE __attribute__((cleanup(cleanup_close)))
#define AUTO_FCLOSE __attribute__((cleanup(cleanup_fclose)))
#define AUTO_BUFFER __attribute__((cleanup(buffer_finish))) struct buffer

#define take_ptr(p)                                                                                                    \
    ({                                                                                                                 \
        __typeof__(*(p)) taken_ = *(p);                                                                                \
        *(p) = NULL;                                                                                                   \
        taken_;                                                                                                        \
    })

static inline int take_fd(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

#endif
