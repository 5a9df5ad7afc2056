/* sluice-image: looks at images and prepares them for sandboxes (workers/image/). */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cmdline/cmdline.h"
#include "workers/images/verbs.h"

/* What a damaged image may make the libraries allocate. A sanitizer needs all the space there is. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define MEMORY_MAX (UINT64_C(4) << 30)
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#undef MEMORY_MAX
#endif
#endif

static atomic_bool stop;

static const struct option rows[] = {
#define OPTION(...) OPTION_ROW(struct invocation, __VA_ARGS__)
#include "workers/images/options.def"
#undef OPTION
};

static const struct cmdline_verb verbs[] = {
    {"inspect", "IMAGE", image_verb_inspect},
    {"prepare", "IMAGE", image_verb_prepare},
    {"list", "", image_verb_list},
    {"prune", "", image_verb_prune},
};

static const struct cmdline_status statuses[] = {
    {IMAGE_EXIT_OK, "done"},
    {IMAGE_EXIT_FAILED, "this node could not: disk, memory, rights"},
    {IMAGE_EXIT_USAGE, "the command line is wrong"},
    {IMAGE_EXIT_REFUSED, "the image is refused"},
    {IMAGE_EXIT_STOPPED, "a signal stopped it"},
};

/* In docs/images.md, before what all programs say of themselves. */
static void print_refusals(FILE *out)
{
    fputs("| refusal (`--json`) | outcome | meaning |\n|---|---|---|\n", out);
    for (int i = IMAGE_REFUSAL_NONE + 1; i < IMAGE_REFUSAL_COUNT; i++)
        fprintf(out, "| `%s` | %s | %s |\n", image_refusal_wire((enum image_refusal)i),
                outcome_wire(image_refusal_outcome((enum image_refusal)i)), image_refusal_doc((enum image_refusal)i));
}

static const struct cmdline line = {
    .program = "sluice-image",
    .verbs = verbs,
    .verb_count = ROWS(verbs),
    .brief = "Looks at images and prepares them",
    .doc = "An image is the root that a task's sandbox stands on: \"host\", a directory, a SIF or "
           "SquashFS file, or an OCI\n"
           "image layout (DIR, or DIR:NAME where it holds several). Workers prepare what a task "
           "names by themselves;\n"
           "beforehand is faster for the first task.\n"
           "\n"
           "* `inspect IMAGE`: Says what an image is and whether it can be used; changes nothing.\n"
           "* `prepare IMAGE`: Unpacks it into the cache, once, and prints the directory.\n"
           "* `list`: Shows what is prepared on this node.\n"
           "* `prune`: Removes what is left of those killed; by --idle, --images-max or --all also images.\n"
           "\n"
           "Nothing is fetched from a registry. These make an image of what is in one:\n"
           "\n"
           "    apptainer build debian.sif docker://debian:12\n"
           "    skopeo copy docker://debian:12 oci:/images/debian:12\n"
           "    docker save debian:12 | tar -x -C /images/debian       # Docker 25 or newer\n",
    .example = "sluice-image inspect debian.sif\n"
               "sluice-image prepare /images/debian:12 --cache /var/tmp/sluice\n"
               "sluice-image prune --idle 7d --cache /var/tmp/sluice\n",
    .tables = {{.rows = rows, .count = ROWS(rows)}},
    .statuses = statuses,
    .status_count = ROWS(statuses),
    .before_markdown = print_refusals,
};

/* ---- running ---------------------------------------------------------------------------------------- */

static void ask_to_stop(int number)
{
    (void)number;
    atomic_store(&stop, true);
}

/* The first signal stops it in order, a second one at once; no call is restarted. */
static void set_up_process(void)
{
    struct sigaction action = {.sa_handler = ask_to_stop, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    umask(022);
#ifdef MEMORY_MAX
    setrlimit(RLIMIT_AS, &(struct rlimit){MEMORY_MAX, MEMORY_MAX});
#endif
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
}

/* False when the parent was gone before it could be asked for. */
static bool follow_parent(uint64_t parent)
{
    if (!parent)
        return true;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return (uint64_t)getppid() == parent;
}

int main(int argc, char **argv)
{
    struct invocation in = {.stop = &stop};
    struct cmdline_values values = {.into = {&in}};
    int status = cmdline_begin(&line, argc - 1, argv + 1, &values);
    const struct cmdline_verb *verb = values.verb;
    in.image = status < 0 ? values.arguments[1] : NULL;
    cmdline_finish(&values);
    if (status >= 0)
        return status;
    if (!follow_parent(in.with_parent))
        return IMAGE_EXIT_STOPPED;
    set_up_process();
    status = verb->run(&in);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "sluice-image: not everything could be written to stdout\n");
        status = status ? status : IMAGE_EXIT_FAILED;
    }
    return status;
}
