#include "workers/stages/build/copy_step.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "workers/files/dirtree.h"
#include "workers/files/open_below.h"
#include "workers/runtime/offload.h"
#include "workers/sources/source.h"
#include "workers/stages/build/build_match.h"
#include "workers/stages/sandbox/base.h"

struct copying_step {
    struct build *build;
    const struct stage_step *step;
    struct stage_sandbox *room, from; /* from: of another stage, or of an image */
    struct build_matching matching;   /* its root is what is copied from */
    bool is_into;                     /* the destination is a directory */
};

/* ---- what is copied from -------------------------------------------------------------------------- */

static int open_from(struct copying_step *copying)
{
    struct build *build = copying->build;
    const struct stage_step *step = copying->step;
    if (step->from_stage < 0 && !step->from) {
        copying->matching.root = build->context.root < 0 ? -1 : dup(build->context.root);
        return copying->matching.root >= 0 || step->source_count == 0
                   ? 0
                   : build_refuse(build, step,
                                  "there is nothing to copy from: the task has neither build.context nor build.files");
    }
    const size_t stage = (size_t)(step->from_stage < 0 ? 0 : step->from_stage);
    const struct image_config as_root = {.user = (char[]){"root"}, .workdir = (char[]){"/"}};
    int code = build_open_room(build, step->from ? step->from : base_of(&build->stages, stage),
                               step->from ? NULL : &build->built[stage].layers, &as_root, &copying->from);
    if (code == -EINVAL)
        return build_refuse(build, step, "%s", build->fail.text);
    if (code == 0)
        code = copying->matching.root = sandbox_open_file(copying->from.sandbox, "/", O_RDONLY | O_DIRECTORY, 0,
                                                          &build->fail);
    return code < 0 ? code : 0;
}

/* ---- one source ------------------------------------------------------------------------------------ */

static int refuse_copy(struct copying_step *copying, int code, const char *what)
{
    struct build *build = copying->build;
    return blame_is_file_fault(code)
               ? build_refuse(build, copying->step, "cannot copy %.300s: %s", what, build->fail.text)
               : code;
}

static char *place_of(const struct copying_step *copying, const char *name)
{
    const char *to = copying->step->destination;
    const size_t len = strlen(to);
    char *place = NULL;
    if (!copying->is_into)
        return strdup(to);
    return asprintf(&place, "%s%s%s", to, len > 0 && to[len - 1] == '/' ? "" : "/", name) < 0 ? NULL : place;
}

/* Who reads what may be slow reads it beside the loop. */
struct reading {
    struct copying_step *copying;
    const char *path;
    int file, error; /* errno's, where it cannot be opened */
    struct stat it;
    bool is_tar; /* of ADD, by what is in it: then its content is in the directory */
    struct layer_dir dir;
    int content;
};

static int unpack(struct reading *reading, const atomic_bool *stop)
{
    struct build *build = reading->copying->build;
    int code = layer_dir_make(build->job->context->layers.cache, &reading->dir, &build->fail);
    if (code < 0)
        return code;
    reading->content = open(reading->dir.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (reading->content < 0)
        return dirtree_refuse(&build->fail, "open", reading->dir.path);
    return source_unpack(reading->file, reading->content, build->job->task->limits.disk_mib, stop, &build->fail);
}

static int read_work(void *arg, const atomic_bool *stop)
{
    struct reading *reading = arg;
    reading->file = open_in_root(reading->copying->matching.root, reading->path, O_RDONLY | O_NONBLOCK, 0);
    if (reading->file < 0 || fstat(reading->file, &reading->it) < 0) {
        reading->error = errno;
        return 0;
    }
    if (reading->copying->step->kind != STEP_ADD || !S_ISREG(reading->it.st_mode))
        return 0;
    reading->is_tar = source_is_tar(reading->file);
    if (reading->is_tar)
        return unpack(reading, stop);
    reading->error = lseek(reading->file, 0, SEEK_SET) < 0 ? errno : 0;
    return 0;
}

static int put_path(struct copying_step *copying, const struct reading *reading)
{
    struct build *build = copying->build;
    const struct stage_step *step = copying->step;
    const bool is_into = reading->is_tar || S_ISDIR(reading->it.st_mode);
    if (reading->error)
        return build_refuse(build, step, "cannot open %.300s: %s", reading->path, strerror(reading->error));
    if (!S_ISDIR(reading->it.st_mode) && !S_ISREG(reading->it.st_mode))
        return build_refuse(build, step, "%.300s is neither a file nor a directory", reading->path);
    AUTO_FREE char *place = is_into ? strdup(step->destination) : place_of(copying, dirtree_leaf(reading->path));
    if (!place)
        return fail_memory(&build->fail);
    int code = sandbox_copy_in(copying->room->sandbox, reading->is_tar ? reading->content : reading->file, place,
                               step->mode, &build->fail);
    return code < 0 ? refuse_copy(copying, code, reading->path) : 0;
}

static int copy_path(struct copying_step *copying, const char *path)
{
    struct reading reading = {.copying = copying, .path = path, .file = -1, .content = -1};
    int code = offload_run(read_work, &reading, &copying->build->fail);
    code = code < 0 ? refuse_copy(copying, code, path) : put_path(copying, &reading);
    cleanup_close(&reading.file);
    cleanup_close(&reading.content);
    layer_dir_discard(&reading.dir);
    return code;
}

static int refuse_match(struct build *build, const struct stage_step *step, int code, const char *source)
{
    if (code == -ENOENT || code == -ENOTDIR || code == -ELOOP)
        return build_refuse(build, step, "%.300s is not there%s", source,
                            step->from || step->from_stage >= 0 ? ""
                            : build->job->task->build.files.count > 0
                                ? ", among build.files without what their .dockerignore names"
                                : ", in build.context without what its .dockerignore names");
    if (code == -E2BIG)
        return build_refuse(build, step, "%.300s means more than %d paths", source, BUILD_MATCHES_MAX);
    if (code == -EOVERFLOW)
        return build_refuse(build, step, "%.300s: more than %d names to look at; links may lead in circles", source,
                            BUILD_NAMES_MAX);
    if (blame_is_file_fault(code))
        return build_refuse(build, step, "%.300s: %s", source, strerror(-code));
    return code == -ECANCELED || code == -ETIMEDOUT
               ? code
               : fail_set(&build->fail, code, "looking for %.300s: %s", source, strerror(-code));
}

struct finding {
    struct build_matching *matching;
    const char *source;
};

static int find_work(void *arg, const atomic_bool *stop)
{
    struct finding *finding = arg;
    finding->matching->stop = stop;
    return build_match(finding->matching, finding->source);
}

static int copy_source(struct copying_step *copying, const char *source)
{
    struct build_matching *matching = &copying->matching;
    int code = offload_run(find_work, &(struct finding){matching, source}, &copying->build->fail);
    if (code < 0)
        return refuse_match(copying->build, copying->step, code, source);
    copying->is_into |= matching->count > 1;
    for (size_t i = 0; i < matching->count && code == 0; i++)
        code = copy_path(copying, matching->paths[i]);
    return code;
}

/* ---- the step ------------------------------------------------------------------------------------------ */

static int write_heredocs(struct copying_step *copying)
{
    int code = 0;
    for (size_t i = 0; i < copying->step->file_count && code == 0; i++) {
        const struct dockerfile_heredoc *file = &copying->step->files[i];
        AUTO_FREE char *place = place_of(copying, file->name);
        if (!place)
            return fail_memory(&copying->build->fail);
        code = sandbox_write_file(copying->room->sandbox, place, file->content, strlen(file->content),
                                  copying->step->mode ? copying->step->mode : 0644, &copying->build->fail);
        if (code < 0)
            code = refuse_copy(copying, code, file->name);
    }
    return code;
}

/* It ends with "/", or is one. */
static bool is_directory(struct copying_step *copying)
{
    const char *to = copying->step->destination;
    struct fail ignored = {0};
    if (to[strlen(to) - 1] == '/')
        return true;
    AUTO_CLOSE int dir = sandbox_open_file(copying->room->sandbox, to, O_RDONLY | O_DIRECTORY, 0, &ignored);
    return dir >= 0;
}

int copy_step_run(struct build *build, const struct stage_step *step, struct stage_sandbox *room)
{
    struct copying_step copying = {.build = build, .step = step, .room = room, .matching = {.root = -1}};
    copying.is_into = is_directory(&copying);
    int code = open_from(&copying);
    for (size_t i = 0; i < step->source_count && code == 0; i++)
        code = copy_source(&copying, step->sources[i]);
    if (code == 0)
        code = write_heredocs(&copying);
    build_matching_finish(&copying.matching);
    cleanup_close(&copying.matching.root);
    stage_sandbox_close(&copying.from);
    return code;
}

/* ---- its key --------------------------------------------------------------------------------------------- */

struct adding {
    const struct stage_step *step;
    struct digest *digest;
    struct build_matching matching;
    const char *source; /* in hand */
};

static int add_source(struct adding *adding, const char *source)
{
    struct build_matching *matching = &adding->matching;
    int code = build_match(matching, source);
    adding->source = source;
    digest_add_number(adding->digest, matching->count);
    for (size_t i = 0; i < matching->count && code == 0; i++) {
        digest_add_text(adding->digest, dirtree_leaf(matching->paths[i]));
        code = build_content_add(adding->digest, matching->root, matching->paths[i], matching->stop);
    }
    return code;
}

static int add_work(void *arg, const atomic_bool *stop)
{
    struct adding *adding = arg;
    int code = 0;
    adding->matching.stop = stop;
    for (size_t i = 0; i < adding->step->source_count && code == 0; i++)
        code = add_source(adding, adding->step->sources[i]);
    build_matching_finish(&adding->matching);
    return code;
}

static int add_from_context(struct build *build, const struct stage_step *step, struct digest *digest)
{
    struct adding adding = {.step = step, .digest = digest, .matching = {.root = build->context.root}};
    if (step->source_count == 0)
        return 0;
    if (build->context.root < 0)
        return build_refuse(build, step,
                            "there is nothing to copy from: the task has neither build.context nor build.files");
    int code = offload_run(add_work, &adding, &build->fail);
    return code < 0 ? refuse_match(build, step, code, adding.source ? adding.source : step->sources[0]) : 0;
}

int copy_step_add(struct build *build, const struct stage_step *step, struct digest *digest)
{
    char key[DIGEST_SIZE] = "";
    digest_add_number(digest, step->mode);
    digest_add_text(digest, step->destination);
    digest_add_number(digest, step->file_count);
    for (size_t i = 0; i < step->file_count; i++) {
        digest_add_text(digest, step->files[i].name);
        digest_add_text(digest, step->files[i].content);
    }
    digest_add_number(digest, step->source_count);
    if (step->from_stage < 0 && !step->from)
        return add_from_context(build, step, digest);
    int code = step->from ? build_base_key(build, step->from, key) : 0;
    digest_add_text(digest, step->from ? key : build->built[step->from_stage].key);
    digest_add_texts(digest, step->sources, step->source_count);
    return code == -EINVAL ? build_refuse(build, step, "%s", build->fail.text) : code;
}
