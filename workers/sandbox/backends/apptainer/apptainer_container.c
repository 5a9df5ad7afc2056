/* A container by apptainer, from outside: its directories, then this process becomes that program. */
#include "workers/sandbox/backends/apptainer/apptainer_container.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "workers/sandbox/backends/apptainer/apptainer_ask.h"
#include "workers/sandbox/backends/apptainer/apptainer_look.h"
#include "workers/sandbox/backends/apptainer/apptainer_show.h"
#include "workers/sandbox/backends/apptainer/apptainer_site.h"
#include "workers/sandbox/backends/landlock/landlock_layers.h"
#include "workers/sandbox/container/host_image.h"
#include "workers/sandbox/container/mounts.h"
#include "workers/sandbox/proto/usage.h"
#include "workers/sandbox/init/launch.h"

static int refuse(struct fail *fail, const char *what)
{
    return fail_set(fail, -errno, "%s: %s", what, strerror(errno));
}

/* ---- directories ------------------------------------------------------------------------ */

static int make_dirs(struct site *site, struct fail *fail)
{
    static const struct {
        const char *path;
        mode_t mode;
    } dirs[] = {{"shm", 01777},           {"run", 0755},          {"run/out", 0700},        {"root", 0755},
                {"root/proc", 0755},      {"root/dev", 0755},     {"root/tmp", 0755},       {"root/run", 0755},
                {"root/workspace", 0755}, {"root/.sluice", 0755}, {"root/run/sluice", 0755}};
    int code = 0;
    for (size_t i = 0; i < sizeof(dirs) / sizeof(*dirs) && code == 0; i++)
        code = site_make_dir(site->disk, dirs[i].path, dirs[i].mode, fail);
    if (code == 0)
        code = site_make_file(site->disk, "root/.sluice/init", 0755, (struct slice){0}, fail);
    if (code == 0)
        code = site->root = site_open_dir(site->disk, "root", fail);
    return code < 0 ? code : 0;
}

static char session[NAME_MAX];

static int copy_program(int dir, int program, struct fail *fail)
{
    struct stat it;
    void *bytes = fstat(program, &it) < 0 ? MAP_FAILED
                                          : mmap(NULL, (size_t)it.st_size, PROT_READ, MAP_PRIVATE, program, 0);
    if (bytes == MAP_FAILED)
        return refuse(fail, "the first process's program");
    int code = site_make_file(dir, "init", 0755, slice_of(bytes, (size_t)it.st_size), fail);
    munmap(bytes, (size_t)it.st_size);
    return code;
}

int apptainer_prepare(const char *directory, int program, struct fail *fail)
{
    static const char *const question[] = {"apptainer", "buildcfg", "SESSIONDIR", NULL};
    AUTO_CLOSE int dir = site_open_dir(AT_FDCWD, directory, fail);
    int code = dir < 0 ? dir : copy_program(dir, program, fail);
    return code == 0 ? apptainer_ask(question, session, sizeof(session), fail) : code;
}

/* ---- what can be written ------------------------------------------------------------------ */

/* The image's own /workspace and /tmp, as directories that nobody shares. */
static int copy_from_image(struct site *site, int upper, const char *name, struct fail *fail)
{
    char path[CONTAINER_PATH_SIZE];
    struct stat it;
    if (host_image_is(site->plan->image))
        return 0;
    if (snprintf(path, sizeof(path), "%s/%s", site->plan->image, name) >= (int)sizeof(path))
        return fail_set(fail, -ENAMETOOLONG, "a path is too long: %.200s", site->plan->image);
    if (lstat(path, &it) < 0 || !S_ISDIR(it.st_mode))
        return 0;
    AUTO_CLOSE int to = site_open_dir(upper, name, fail);
    return to < 0 ? to : landlock_layers_copy_dir(path, to, site->plan->usage, fail);
}

static int fill_upper(struct site *site, int upper, struct fail *fail)
{
    static const char *const names[] = {"workspace", "tmp"};
    const struct container_plan *plan = site->plan;
    int code = 0;
    for (size_t i = 0; i < 2 && code == 0; i++) {
        code = landlock_layers_need_dir(upper, names[i], fail);
        if (code == 0)
            code = copy_from_image(site, upper, names[i], fail);
    }
    for (size_t i = 0; i < plan->layer_count && code == 0; i++)
        code = landlock_layers_copy(plan->layers[i], upper, plan->tier, plan->usage, fail);
    for (size_t i = 0; i < 2 && code == 0; i++)
        code = landlock_layers_need_dir(upper, names[i], fail);
    return code;
}

static int bind_own(struct site *site, struct fail *fail)
{
    static const struct {
        const char *from, *to;
        bool is_writable;
    } own[] = {
        {"upper/tmp", "/tmp", true},   {"upper/workspace", "/workspace", true}, {"shm", "/dev/shm", true},
        {"run", "/run/sluice", false}, {"run/out", "/run/sluice/out", true},    {"../init", "/.sluice/init", false}};
    int code = 0;
    for (size_t i = 0; i < sizeof(own) / sizeof(*own) && code == 0; i++) {
        char from[CONTAINER_PATH_SIZE];
        snprintf(from, sizeof(from), "%s/%s", site->path, own[i].from);
        code = apptainer_bind(&site->command, from, own[i].to, own[i].is_writable, fail);
    }
    return code;
}

/* ---- becoming it ---------------------------------------------------------------------------- */

/* A pipe with all of it inside. */
static int write_handover(const struct site *site, struct fail *fail)
{
    static struct apptainer_handover it; /* all zero, and so its padding */
    const struct container_plan *plan = site->plan;
    int ends[2];
    it.size = sizeof(it);
    it.id = plan->id;
    it.layer_count = plan->layer_count;
    it.container = plan->wanted;
    AUTO_CLOSE int proc = site_open_dir(AT_FDCWD, "/proc", fail);
    int code = proc < 0 ? proc : apptainer_namespaces(proc, it.outside, fail);
    if (code == 0)
        code = apptainer_list_points(&site->command, it.points, fail);
    if (code < 0)
        return code;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return refuse(fail, "pipe");
    ssize_t wrote = write(ends[1], &it, sizeof(it));
    close(ends[1]);
    if (wrote == sizeof(it))
        return ends[0];
    close(ends[0]);
    return fail_set(fail, -EIO, "the pipe takes %zd of %zu bytes", wrote, sizeof(it));
}

/* What the program finds open, in the order of apptainer.h, and nothing else but 0 to 2. */
static int place_fds(const struct site *site, int upper, int handover, struct fail *fail)
{
    int fds[] = {CONTAINER_CONTROL_FD, CONTAINER_BIRTHS_FD, upper, -1, -1, site->plan->brought[0], handover};
    enum { COUNT = sizeof(fds) / sizeof(*fds) };
    fds[3] = site_open_dir(site->disk, "run", fail);
    fds[4] = site_open_dir(site->disk, "run/out", fail);
    for (size_t i = 0; i < COUNT; i++) /* out of each other's way */
        if (fds[i] < 0 || (fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 32)) < 0)
            return refuse(fail, "descriptors");
    for (size_t i = 0; i < COUNT; i++)
        if (dup2(fds[i], CONTAINER_CONTROL_FD + (int)i) < 0)
            return refuse(fail, "descriptors");
    return close_range(CONTAINER_CONTROL_FD + COUNT, ~0U, CLOSE_RANGE_CLOEXEC) < 0 ? refuse(fail, "descriptors") : 0;
}

/* Only when it is not there. */
static int become(const struct site *site, int upper, struct fail *fail)
{
    AUTO_CLOSE int handover = write_handover(site, fail);
    int code = handover < 0 ? handover : place_fds(site, upper, handover, fail);
    char **arguments = code == 0 ? apptainer_arguments(&site->command) : NULL;
    if (code < 0)
        return code;
    if (!arguments)
        return fail_memory(fail);
    setsid(); /* a terminal's signals are for the worker */
    launch_reset_signals();
    execvpe(arguments[0], arguments, apptainer_environment());
    code = refuse(fail, "apptainer");
    apptainer_free_arguments(arguments);
    return code;
}

static int open_site(struct site *site, struct fail *fail)
{
    site->disk = open(site->plan->disk, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (site->disk < 0)
        return refuse(fail, site->plan->disk);
    int code = container_name_of(site->disk, site->path, sizeof(site->path));
    if (code < 0)
        return fail_set(fail, code, "the cache's path: %s", strerror(-code));
    site->session = session;
    snprintf(site->containers, sizeof(site->containers), "%s", site->path);
    for (int up = 0; up < 2 && strrchr(site->containers, '/');
         up++) /* <containers>/<of one spawner>/<of one container> */
        *strrchr(site->containers, '/') = '\0';
    snprintf(site->command.root, sizeof(site->command.root), "%s/root", site->path);
    return 0;
}

int apptainer_container_build(const struct container_plan *plan, struct container *ret, struct fail *fail)
{
    if (plan->wanted.uid != CONTAINER_UID || plan->wanted.gid != CONTAINER_UID)
        return fail_set(
            fail, -ENOTSUP,
            "sandboxes of the tier apptainer run as the worker's own user, not as uid %lu; workers with user "
            "namespaces do (sluice doctor)",
            (unsigned long)plan->wanted.uid);
    if (plan->harness_dir)
        return fail_set(
            fail, -ENOTSUP,
            "sandboxes of the tier apptainer do not mount a harness, and %s was named (--harness): install it "
            "in the image; workers with user namespaces do (sluice doctor)",
            plan->harness_name);
    static struct site site;
    *ret = (struct container){.upper = -1, .disk = -1, .commands = -1, .outputs = -1, .proc = -1};
    site = (struct site){.plan = plan, .disk = -1, .root = -1};
    umask(0);
    int code = open_site(&site, fail);
    if (code == 0)
        code = make_dirs(&site, fail);
    if (code == 0)
        code = host_image_is(plan->image) ? site_show_host(&site, fail) : site_show_image(&site, fail);
    if (code == 0)
        code = site_make_dir(site.disk, "upper", 0755, fail);
    if (code == 0)
        code = ret->upper = site_open_dir(site.disk, "upper", fail);
    if (code >= 0)
        code = fill_upper(&site, ret->upper, fail);
    if (code == 0)
        code = bind_own(&site, fail);
    umask(022);
    return code < 0 ? code : become(&site, ret->upper, fail);
}
