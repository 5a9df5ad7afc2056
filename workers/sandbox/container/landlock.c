#include "workers/sandbox/container/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "common/base/cleanup.h"

#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif
#ifndef LANDLOCK_ACCESS_FS_IOCTL_DEV
#define LANDLOCK_ACCESS_FS_IOCTL_DEV (1ULL << 15)
#endif
#ifndef LANDLOCK_ACCESS_NET_BIND_TCP
#define LANDLOCK_ACCESS_NET_BIND_TCP (1ULL << 0)
#define LANDLOCK_ACCESS_NET_CONNECT_TCP (1ULL << 1)
#endif
#ifndef LANDLOCK_SCOPE_SIGNAL
#define LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET (1ULL << 0)
#define LANDLOCK_SCOPE_SIGNAL (1ULL << 1)
#endif

struct ruleset { /* struct landlock_ruleset_attr of ABI 6 */
    uint64_t files, net, scoped;
};

static const uint64_t scopes = LANDLOCK_SCOPE_SIGNAL | LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET;

#define FS(name) LANDLOCK_ACCESS_FS_##name
static const uint64_t of_files = FS(EXECUTE) | FS(READ_FILE) | FS(WRITE_FILE) | FS(TRUNCATE) | FS(IOCTL_DEV);
static const uint64_t reading = FS(EXECUTE) | FS(READ_FILE) | FS(READ_DIR);
static const uint64_t writing = FS(EXECUTE) | FS(READ_FILE) | FS(READ_DIR) | FS(WRITE_FILE) | FS(TRUNCATE) |
                                FS(REMOVE_DIR) | FS(REMOVE_FILE) | FS(MAKE_DIR) | FS(MAKE_REG) | FS(MAKE_FIFO) |
                                FS(MAKE_SYM) | FS(REFER);
static const uint64_t never = FS(MAKE_CHAR) | FS(MAKE_BLOCK) | FS(MAKE_SOCK);

static int refuse(struct fail *fail, const char *what)
{
    return fail_set(fail, -errno, "Landlock: %s: %s", what, strerror(errno));
}

int landlock_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return abi < 0 ? -errno : (int)abi;
}

static int create(const struct ruleset *ruleset, struct fail *fail)
{
    int rules = (int)syscall(SYS_landlock_create_ruleset, ruleset, sizeof(*ruleset), 0);
    return rules < 0 ? refuse(fail, "a ruleset") : rules;
}

int landlock_begin(struct fail *fail)
{
    const struct ruleset all = {.files = writing | of_files | never,
                                .net = LANDLOCK_ACCESS_NET_BIND_TCP | LANDLOCK_ACCESS_NET_CONNECT_TCP,
                                .scoped = scopes};
    return create(&all, fail);
}

static uint64_t rights_of(enum landlock_right right)
{
    switch (right) {
    case LANDLOCK_READ: return reading;
    case LANDLOCK_LIST: return FS(READ_DIR);
    case LANDLOCK_WRITE: return writing;
    case LANDLOCK_MOVE: return FS(REFER);
    case LANDLOCK_DEVICE: return FS(READ_FILE) | FS(WRITE_FILE) | FS(IOCTL_DEV);
    }
    return 0;
}

int landlock_allow(int rules, const char *path, enum landlock_right right, struct fail *fail)
{
    struct stat it;
    AUTO_CLOSE int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &it) < 0)
        return refuse(fail, path);
    struct landlock_path_beneath_attr rule = {
        .allowed_access = rights_of(right) & (S_ISDIR(it.st_mode) ? UINT64_MAX : of_files), .parent_fd = fd};
    if (syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
        return refuse(fail, path);
    return 0;
}

int landlock_apply(int rules, struct fail *fail)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_landlock_restrict_self, rules, 0) < 0)
        return refuse(fail, "restricting");
    return 0;
}

/* All rules refuse to link and rename from one directory to another, unless they allow it. */
int landlock_seclude(struct fail *fail)
{
    AUTO_CLOSE int rules = create(&(struct ruleset){.files = FS(REFER), .scoped = scopes}, fail);
    int code = rules < 0 ? rules : landlock_allow(rules, "/", LANDLOCK_MOVE, fail);
    return code < 0 ? code : landlock_apply(rules, fail);
}
