/* sluice-image: looks at images and prepares them for sandboxes (workers/image/). */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

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
static uint64_t parent; /* 0: nobody's */

static const struct verb {
    const char *name, *argument, *doc;
    int (*run)(const struct image_call *call);
} verbs[] = {
    {"inspect", "IMAGE", "Says what an image is and whether it can be used; changes nothing.",
     image_verb_inspect},
    {"prepare", "IMAGE", "Unpacks it into the cache, once, and prints the directory.",
     image_verb_prepare},
    {"list", "", "Shows what is prepared on this node.", image_verb_list},
    {"prune", "", "Removes what is left of those killed; by --idle, --max-gib or --all also images.",
     image_verb_prune},
};
enum { VERBS = sizeof(verbs) / sizeof(*verbs) };

enum option_id {
    OPTION_NONE = 256, /* above every character, as getopt_long wants */
#define OPTION(name, word, argument, verbs, doc) OPTION_##name,
#include "workers/images/options.def"
#undef OPTION
};

static const struct {
    const char *word, *argument, *verbs, *doc;
} rows[] = {
#define OPTION(name, word, argument, verbs, doc) {word, argument, verbs, doc},
#include "workers/images/options.def"
#undef OPTION
};

static const struct option long_options[] = {
#define OPTION(name, word, argument, verbs, doc)                                                   \
    {word, (argument) ? required_argument : no_argument, NULL, OPTION_##name},
#include "workers/images/options.def"
#undef OPTION
    {0}};

static void print_help(FILE *out)
{
    fputs("sluice-image VERB [IMAGE] [OPTION ...]\n\n"
          "An image is the root that a task's sandbox stands on: \"host\", a directory, a SIF or\n"
          "SquashFS file, or an OCI image layout (DIR, or DIR:NAME where it holds several). Workers\n"
          "prepare what a task names by themselves; beforehand is faster for the first task.\n\n",
          out);
    for (size_t i = 0; i < VERBS; i++)
        fprintf(out, "  %s %-*s %s\n", verbs[i].name, (int)(14 - strlen(verbs[i].name)),
                verbs[i].argument, verbs[i].doc);
    fputs("\n", out);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char head[32];
        snprintf(head, sizeof(head), "--%s %s", rows[i].word,
                 rows[i].argument ? rows[i].argument : "");
        fprintf(out, "  %-15s %s\n", head, rows[i].doc);
    }
    fputs("\nNothing is fetched from a registry. These make an image of what is in one:\n\n"
          "  apptainer build debian.sif docker://debian:12\n"
          "  skopeo copy docker://debian:12 oci:/images/debian:12\n"
          "  docker save debian:12 | tar -x -C /images/debian       # Docker 25 or newer\n\n"
          "For example:\n\n"
          "  sluice-image inspect debian.sif\n"
          "  sluice-image prepare /images/debian:12 --cache /var/tmp/sluice\n"
          "  sluice-image prune --idle 604800 --cache /var/tmp/sluice\n\n"
          "Ends with 0 when done, 1 when this node could not (disk, memory, rights), 2 for a wrong\n"
          "command line, 3 when the image is refused, 4 when it was stopped by a signal.\n",
          out);
}

/* The end of docs/images.md. */
static void print_markdown(FILE *out)
{
    fputs("| refusal (`--json`) | outcome | meaning |\n|---|---|---|\n", out);
    for (int i = IMAGE_REFUSAL_NONE + 1; i < IMAGE_REFUSAL_COUNT; i++)
        fprintf(out, "| `%s` | %s | %s |\n", image_refusal_wire((enum image_refusal)i),
                outcome_wire(image_refusal_outcome((enum image_refusal)i)),
                image_refusal_doc((enum image_refusal)i));
    fputs("\n## The program\n\n`sluice image` is the program `sluice-image`.\n\n"
          "| verb | what it does |\n|---|---|\n",
          out);
    for (size_t i = 0; i < VERBS; i++)
        fprintf(out, "| `%s%s%s` | %s |\n", verbs[i].name, *verbs[i].argument ? " " : "",
                verbs[i].argument, verbs[i].doc);
    fputs("\n| option | of | meaning |\n|---|---|---|\n", out);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        fprintf(out, "| `--%s%s%s` | %s | %s |\n", rows[i].word, rows[i].argument ? " " : "",
                rows[i].argument ? rows[i].argument : "", rows[i].verbs, rows[i].doc);
    fputs("\nIt exits with 0 when done, 1 when this node could not (disk, memory, rights), 2 for a wrong command line, 3 when the\n"
          "image is refused, 4 when a signal stopped it.\n",
          out);
}

static int wrong(const char *format, const char *word, const char *more)
{
    fputs("sluice-image: ", stderr);
    fprintf(stderr, format, word, more);
    fputs("\nTry: sluice-image --help\n", stderr);
    return IMAGE_EXIT_USAGE;
}

/* ---- options -------------------------------------------------------------------------------------- */

static bool parse_number(const char *text, uint64_t max, uint64_t *ret)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || value < 1 || value > max)
        return false;
    *ret = value;
    return true;
}

static int take_number(const char *text, unsigned shift, uint64_t *ret, const char *word)
{
    uint64_t number;
    if (!parse_number(text, (UINT64_C(1) << 62) >> shift, &number))
        return wrong("%s: %s is no number from 1 on", word, text);
    *ret = number << shift;
    return 0;
}

static int take_option(int id, const char *word, const char *value, struct image_call *call,
                       bool *help)
{
    switch (id) {
    case OPTION_cache:
        call->cache = value;
        return 0;
    case OPTION_json:
        call->json = true;
        return 0;
    case OPTION_to:
        call->to = value;
        return 0;
    case OPTION_max_gib:
        return take_number(value, 30, &call->max_bytes, word);
    case OPTION_limit_gib:
        return take_number(value, 30, &call->limits.bytes, word);
    case OPTION_limit_files:
        return take_number(value, 0, &call->limits.entries, word);
    case OPTION_idle:
        return take_number(value, 0, &call->idle_s, word);
    case OPTION_all:
        call->all = true;
        return 0;
    case OPTION_with_parent:
        return take_number(value, 0, &parent, word);
    case OPTION_help:
        *help = true;
        return 0;
    default:
        return wrong("%s: no such option, or its argument is missing%s", word, "");
    }
}

static bool is_for_verb(int id, const struct verb *verb)
{
    const char *found = strstr(rows[id - OPTION_NONE - 1].verbs, verb->name);
    return found != NULL; /* no verb's name is part of another's */
}

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < VERBS; i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}

/* What is no option: the verb, and its image. */
static int take_words(int argc, char **argv, const struct verb **ret_verb, struct image_call *call)
{
    const struct verb *verb = optind < argc ? find_verb(argv[optind]) : NULL;
    int wanted = verb && *verb->argument ? 2 : 1;
    if (!verb)
        return optind < argc ? wrong("there is no verb %s%s", argv[optind], "")
                             : wrong("say what to do: inspect, prepare, list or prune%s%s", "", "");
    if (argc - optind < wanted)
        return wrong("%s: say which image%s", verb->name, "");
    if (argc - optind > wanted)
        return wrong("%s: one word too many: %s", verb->name, argv[optind + wanted]);
    call->image = wanted == 2 ? argv[optind + 1] : NULL;
    *ret_verb = verb;
    return 0;
}

static int parse(int argc, char **argv, const struct verb **ret_verb, struct image_call *call,
                 bool *help)
{
    bool given[sizeof(rows) / sizeof(*rows)] = {false};
    int id, status = 0;
    opterr = 0;
    while (status == 0 && (id = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
        id = id == 'h' ? OPTION_help : id;
        status = take_option(id, argv[optind - 1], optarg, call, help);
        if (status == 0)
            given[id - OPTION_NONE - 1] = true;
    }
    if (status || *help || (status = take_words(argc, argv, ret_verb, call)))
        return status;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (given[i] && !is_for_verb((int)i + OPTION_NONE + 1, *ret_verb))
            return wrong("--%s is not for %s", rows[i].word, (*ret_verb)->name);
    return 0;
}

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
static bool follow_parent(void)
{
    if (!parent)
        return true;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return (uint64_t)getppid() == parent;
}

int main(int argc, char **argv)
{
    struct image_call call = {.cache = "./sluice-data/cache",
                              .idle_s = UINT64_MAX,
                              .limits = {ROOTFS_BYTES_MAX, ROOTFS_ENTRIES_MAX},
                              .stop = &stop};
    const struct verb *verb = NULL;
    bool help = false;
    if (argc == 2 && strcmp(argv[1], "--help-markdown") == 0) {
        print_markdown(stdout);
        return IMAGE_EXIT_OK;
    }
    int status = parse(argc, argv, &verb, &call, &help);
    if (status)
        return status;
    if (help) {
        print_help(stdout);
        return IMAGE_EXIT_OK;
    }
    if (!follow_parent())
        return IMAGE_EXIT_STOPPED;
    set_up_process();
    status = verb->run(&call);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "sluice-image: not everything could be written to stdout\n");
        status = status ? status : IMAGE_EXIT_FAILED;
    }
    return status;
}
