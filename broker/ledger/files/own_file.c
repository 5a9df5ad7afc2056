#include "broker/ledger/files/own_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"

enum { OWN_MODE = 0600, OTHERS = 077 };

int own_file_make(const char *path, struct fail *fail)
{
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, OWN_MODE);
    if (fd < 0 || fchmod(fd, OWN_MODE) < 0)
        return fail_set(fail, -errno, "cannot make %s: %s", path, strerror(errno));
    return 0;
}

int own_file_check_name(const char *path, struct fail *fail)
{
    struct stat found;
    if (lstat(path, &found) < 0)
        return 0;
    if (S_ISLNK(found.st_mode))
        return fail_set(fail, -ELOOP,
                        "%s is a symbolic link, and the ledger's files must lie in the directory "
                        "itself: name the directory that it leads to as --data, or move them here",
                        path);
    if (S_ISREG(found.st_mode) && found.st_nlink > 1)
        return fail_set(fail, -EMLINK,
                        "%s has %llu names (hard links), and a broker on each would write over what "
                        "the other wrote: end any that runs on it, then remove the other names, or put a copy "
                        "(cp, without -l) in its place",
                        path, (unsigned long long)found.st_nlink);
    return 0;
}

int own_file_close(const char *path, struct fail *fail)
{
    struct stat found;
    if (stat(path, &found) < 0 || !(found.st_mode & OTHERS) || chmod(path, found.st_mode & 07777 & ~OTHERS) == 0 ||
        errno != EPERM || access(path, W_OK) < 0)
        return 0; /* what else may be the matter with it is said by whoever opens it */
    return fail_set(fail, -EPERM,
                    "%s may be used by others (mode %03o) and belongs to another user, so that "
                    "the broker cannot change that: chown it to the broker's user, or chmod it to 600",
                    path, (unsigned)found.st_mode & 0777);
}
