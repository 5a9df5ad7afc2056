#include "common/base/memory.h"

#include <malloc.h>

enum { GROWN_BY = 1 << 18, OF_ITS_OWN = 1 << 22 /* bytes from which on something gets pages of its own */ };

void memory_keep(size_t bytes)
{
#ifdef __GLIBC__
    mallopt(M_TRIM_THRESHOLD, (int)bytes);
    mallopt(M_TOP_PAD, GROWN_BY);
    mallopt(M_MMAP_THRESHOLD, OF_ITS_OWN);
#else
    (void)bytes;
#endif
}
