#include "workers/service/stale_sockets.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/base/cleanup.h"

enum { YOUNG_S = 10 }; /* between bind and listen a socket refuses, too; that takes no seconds */

static bool is_left(const struct sockaddr_un *address)
{
    struct stat found;
    if (lstat(address->sun_path, &found) < 0 || !S_ISSOCK(found.st_mode) || time(NULL) - found.st_mtime < YOUNG_S)
        return false;
    AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 && errno == ECONNREFUSED;
}

void stale_sockets_remove(const char *directory)
{
    DIR *entries = opendir(directory);
    if (!entries)
        return; /* binding says so in words */
    for (struct dirent *entry; (entry = readdir(entries));) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int len = snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", directory, entry->d_name);
        if (strncmp(entry->d_name, "lane-", 5) == 0 && len < (int)sizeof(address.sun_path) && is_left(&address))
            unlink(address.sun_path);
    }
    closedir(entries);
}
