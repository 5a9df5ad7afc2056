/*
 * Random trees: what a sandbox left, packed and unpacked under the next, is there as it was, entry
 * by entry; and what that one did to it as well. Of layers that become one, too. SLUICE_LAYER_SEED and
 * SLUICE_LAYER_ROUNDS say which and how many; each round is TREES trees and two layers.
 */
#include "tests/workers/sandbox/sandbox_fixture.h"

#include "common/base/cleanup.h"
#include "common/files/dirtree_remove.h"
#include "workers/layers/layer.h"
#include "workers/layers/merge.h"
#include "workers/files/dirtree.h"
#include "workers/sandbox/command.h"

enum { ROUNDS = 8, TEXT_MAX = 4 << 20 };

static char store[128], cache[128];
static struct layers layers = {.store = store, .cache = cache};
static const struct layers kept = {.store = store, .cache = cache, .keeps_all = true};

/* python3 SCRIPT SEED OPERATIONS LINKS: does so many in each tree, if any, and lists all there is. */
static const char script[] =
    "import os, random, socket, stat, sys, hashlib\n"
    "TREES = 6\n"
    "dice = random.Random(int(sys.argv[1]))\n"
    "NAMES = [b'a', b'b', b'c.txt', b'-rf', b'new\\nline', b'\\xff\\xfe', b'.wh.a', "
    "b'.wh..wh..opq', b'.wh.', b'.wh..wh.sluice.x',\n"
    "         b'.wh..wh.sluice..wh.a', b'...', b' ', b'h\\xc3\\xa9', b'n' * 255, b'.wh.' + b'm' * "
    "251, b'd' * 120, b'*', b'\\\\']\n"
    "def pick(seq): return seq[dice.randrange(len(seq))] if seq else None\n"
    "def walk(top):\n"
    "    dirs, files = [top], []\n"
    "    for at in dirs:\n"
    "        try: names = sorted(os.listdir(at))\n"
    "        except OSError: continue\n"
    "        for name in names:\n"
    "            path = at + b'/' + name\n"
    "            (dirs if stat.S_ISDIR(os.lstat(path).st_mode) else files).append(path)\n"
    "    return dirs, files\n"
    "def fresh(dirs):\n"
    "    at = pick(dirs) if dice.random() < 0.7 else dirs[-1]\n"
    "    if at.count(b'/') > 30 or len(at) > 2500: at = dirs[0]\n"
    "    return at + b'/' + pick(NAMES)\n"
    "def blob(): return dice.randbytes(pick([0, 1, 100, 511, 512, 513, 5000, 70000]))\n"
    "def own(path, flags): return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)\n"
    "def write(path, how='wb'):\n"
    "    with open(path, how, opener=own) as f: f.write(blob())\n"
    "def holes(path):\n"
    "    with open(path, 'r+b' if os.path.lexists(path) else 'wb', opener=own) as f:\n"
    "        for _ in range(dice.randrange(4)):\n"
    "            f.seek(dice.randrange(0, 3000000, 4096)); f.write(blob())\n"
    "        f.truncate(dice.randrange(1500000, 3000000))\n"
    "def bind(path):\n"
    "    os.chdir(os.path.dirname(path)); s = socket.socket(socket.AF_UNIX); "
    "s.bind(os.path.basename(path)[:100]); s.close()\n"
    "def remove(path):\n"
    "    if stat.S_ISDIR(os.lstat(path).st_mode):\n"
    "        for name in os.listdir(path): remove(path + b'/' + name)\n"
    "        os.rmdir(path)\n"
    "    else: os.unlink(path)\n"
    "def swap(path):\n"
    "    is_dir = stat.S_ISDIR(os.lstat(path).st_mode)\n"
    "    remove(path)\n"
    "    write(path) if is_dir else os.mkdir(path)\n"
    "    if dice.random() < 0.3: remove(path); os.mkdir(path) if is_dir else write(path)\n"
    "def link(src, dst):\n"
    "    if os.lstat(src).st_mode & 0o400: os.link(src, dst, follow_symlinks=False)\n"
    "def mode(path):\n"
    "    it = os.lstat(path)\n"
    "    if stat.S_ISREG(it.st_mode): os.chmod(path, pick([0o644, 0o600, 0o755, 0o444, 0o777] + "
    "[0] * (it.st_nlink == 1)))\n"
    "    elif stat.S_ISDIR(it.st_mode): os.chmod(path, pick([0o755, 0o700, 0o1777, 0o2755, "
    "0o711]))\n"
    "def when(path): os.utime(path, ns=(0, dice.randrange(10**18, 2 * 10**18)), "
    "follow_symlinks=False)\n"
    "def note(path):\n"
    "    if not stat.S_ISLNK(os.lstat(path).st_mode):\n"
    "        os.setxattr(path, b'user.' + pick([b'a', b'b.c', b'h\\xc3\\xa9']), "
    "dice.randbytes(pick([0, 1, 300])))\n"
    "TARGETS = [b'a', b'/usr/bin/env', b'/no/where', b'..', b'../../../../etc/passwd', b't' * 300, "
    "b'new\\nline', b'.wh.a', b'\\xff']\n"
    "def step(top):\n"
    "    dirs, files = walk(top)\n"
    "    every = dirs[1:] + files\n"
    "    pick([lambda: write(fresh(dirs)), lambda: write(fresh(dirs)), lambda: "
    "os.mkdir(fresh(dirs)), lambda: os.mkdir(fresh(dirs)),\n"
    "          lambda: write(pick(files), 'ab'), lambda: write(pick(files)), lambda: "
    "holes(fresh(dirs)), lambda: holes(pick(files)),\n"
    "          lambda: os.symlink(pick(TARGETS), fresh(dirs)), lambda: link(pick(files), "
    "fresh(dirs)), lambda: link(pick(files), fresh(dirs)),\n"
    "          lambda: remove(pick(every)), lambda: swap(pick(every)), lambda: "
    "os.rename(pick(every), fresh(dirs)),\n"
    "          lambda: os.rename(pick(files), fresh(dirs)), lambda: os.mkfifo(fresh(dirs)), "
    "lambda: bind(fresh(dirs)),\n"
    "          lambda: mode(pick(every)), lambda: when(pick(every)), lambda: note(pick(every)),\n"
    "          lambda: os.removexattr(pick(every), b'user.a')])()\n"
    "def shut(top):\n"
    "    for at in reversed(walk(top)[0][1:]):\n"
    "        if dice.random() < 0.15: os.chmod(at, 0)\n"
    "def opened(path, it, read):\n"
    "    need = 0o700 if stat.S_ISDIR(it.st_mode) else 0o400\n"
    "    if it.st_mode & need == need: return read()\n"
    "    os.chmod(path, 0o700)\n"
    "    try: return read()\n"
    "    finally: os.chmod(path, stat.S_IMODE(it.st_mode))\n"
    "def show(path, out, inodes):\n"
    "    it = os.lstat(path)\n"
    "    kind = stat.S_IFMT(it.st_mode)\n"
    "    if kind not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK): return\n"
    "    first = inodes.setdefault((it.st_dev, it.st_ino), path) if kind == stat.S_IFREG and "
    "int(sys.argv[3]) else path\n"
    "    def inside():\n"
    "        said = sorted((x, os.getxattr(path, x)) for x in os.listxattr(path)) if kind != "
    "stat.S_IFLNK else []\n"
    "        if kind == stat.S_IFREG:\n"
    "            with open(path, 'rb') as f: text = hashlib.md5(f.read()).hexdigest()\n"
    "            said += [it.st_size, text, bool(int(sys.argv[3])) and it.st_size > 10**6 and "
    "it.st_blocks * 512 < it.st_size // 2]\n"
    "        said += [os.readlink(path)] if kind == stat.S_IFLNK else []\n"
    "        out.append(f'{path!r} {kind:o} {stat.S_IMODE(it.st_mode) & 0o1777:o} {it.st_mtime_ns} "
    "{it.st_uid} {first!r} {said}')\n"
    "        if kind == stat.S_IFDIR:\n"
    "            for name in sorted(os.listdir(path)): show(path + b'/' + name, out, inodes)\n"
    "    inside() if kind == stat.S_IFLNK else opened(path, it, inside)\n"
    "for k in range(TREES):\n"
    "    top = b'/workspace/tree%d' % k\n"
    "    if int(sys.argv[2]) and not os.path.isdir(top): os.mkdir(top)\n"
    "    for _ in range(int(sys.argv[2])):\n"
    "        try: step(top)\n"
    "        except (OSError, TypeError, AttributeError): pass\n"
    "        os.chdir('/')\n"
    "    if int(sys.argv[2]): shut(top)\n"
    "out, inodes = [], {}\n"
    "for k in range(TREES): show(b'/workspace/tree%d' % k, out, inodes)\n"
    "print('\\n'.join(out))\n";

static struct sandbox *open_on_all(const char **paths, size_t count)
{
    struct sandbox_plan plan = host_plan();
    plan.layers = paths;
    plan.layer_count = count;
    return open_sandbox(&plan);
}

static struct sandbox *open_on(const char *lower, const char *upper)
{
    const char *paths[] = {lower, upper};
    return open_on_all(paths, (size_t)((lower != NULL) + (upper != NULL)));
}

/*
 * With links, each file says which other is the same, and whether it has holes. Not for what was
 * copied up from below: overlayfs does not number those alike, and fills holes.
 *
 * The list of what is there after `operations` of `seed`; free it.
 */
static char *act(struct sandbox *sandbox, unsigned seed, unsigned operations, bool with_links)
{
    struct sandbox_output output;
    struct fail fail = {0};
    AUTO_FREE char *command = NULL;
    assert_true(asprintf(&command, "exec python3 /dev/stdin %u %u %d << 'THE END'\n%sTHE END\n", seed, operations,
                         with_links, script) > 0);
    if (sandbox_command(sandbox, command, COMMAND_MS, TEXT_MAX, &output, &fail) < 0)
        fail_msg("%s", fail.text);
    if (output.status != 0)
        fail_msg("seed %u: %s", seed, output.text);
    return output.text;
}

static void pack_and_unpack(struct sandbox *sandbox, char **ret_path)
{
    struct layer layer = {0};
    struct fail fail = {0};
    if (layer_pack(&layers, sandbox, &layer, &fail) < 0 ||
        layer_unpack(&layers, layer.digest, buffer_peek(&layer.inlined), ret_path, &fail) < 0)
        fail_msg("%s", fail.text);
    layer_finish(&layer);
}

/* Says the first line in which they differ. */
static void expect_same(const char *now, const char *before, unsigned seed, const char *what)
{
    size_t at = 0, line = 0;
    for (; now[at] && now[at] == before[at]; at++)
        line = now[at] == '\n' ? at + 1 : line;
    if (now[at] == before[at])
        return;
    print_error("seed %u, %s:\n", seed, what); /* fail_msg would cut it off */
    fprintf(stderr, "%.*s\nwas\n%.*s\n", (int)strcspn(now + line, "\n"), now + line, (int)strcspn(before + line, "\n"),
            before + line);
    fail();
}

static void do_round(unsigned seed)
{
    char *lower, *upper;
    struct sandbox *sandbox = open_on(NULL, NULL);
    AUTO_FREE char *first = act(sandbox, seed, 60, true);
    pack_and_unpack(sandbox, &lower);
    sandbox_close(&sandbox);

    sandbox = open_on(lower, NULL);
    AUTO_FREE char *seen = act(sandbox, seed, 0, true);
    expect_same(seen, first, seed, "the first layer");
    sandbox_close(&sandbox);

    sandbox = open_on(lower, NULL);
    AUTO_FREE char *second = act(sandbox, seed + 1, 40, false);
    pack_and_unpack(sandbox, &upper);
    sandbox_close(&sandbox);

    sandbox = open_on(lower, upper);
    AUTO_FREE char *again = act(sandbox, seed, 0, false);
    expect_same(again, second, seed, "the second layer");
    sandbox_close(&sandbox);
    free(lower);
    free(upper);
}

/* ---- several become one ----------------------------------------------------------------------- */

enum { STACK = 5 };

struct stack {
    char digests[STACK][DIGEST_SIZE];
    char *paths[STACK];
    size_t count;
};

static void finish_stack(struct stack *stack)
{
    while (stack->count > 0)
        free(stack->paths[--stack->count]);
}

static void unpack_top(struct stack *stack)
{
    struct fail fail = {0};
    if (layer_unpack(&kept, stack->digests[stack->count], (struct slice){0}, &stack->paths[stack->count], &fail) < 0)
        fail_msg("%s", fail.text);
    stack->count++;
}

static void add_layer(struct stack *stack, unsigned seed)
{
    struct layer layer = {0};
    struct fail fail = {0};
    struct sandbox *sandbox = open_on_all((const char **)stack->paths, stack->count);
    AUTO_FREE char *ignored = act(sandbox, seed, 40, false);
    if (layer_pack(&kept, sandbox, &layer, &fail) < 0)
        fail_msg("%s", fail.text);
    memcpy(stack->digests[stack->count], layer.digest, DIGEST_SIZE);
    unpack_top(stack);
    layer_finish(&layer);
    sandbox_close(&sandbox);
}

/* `of` from its layer `from` up to before `to` as one. */
static void merge(const struct stack *of, size_t from, size_t to, struct stack *ret)
{
    struct layer layer;
    struct fail fail = {0};
    *ret = (struct stack){0};
    for (size_t i = 0; i < of->count; i++) {
        if (i > from && i < to)
            continue;
        memcpy(ret->digests[ret->count], of->digests[i], DIGEST_SIZE);
        if (i == from) {
            if (layer_merge(&kept, from > 0 ? of->paths[0] : NULL, of->digests + from, to - from, &layer, &fail) < 0)
                fail_msg("%s", fail.text);
            memcpy(ret->digests[ret->count], layer.digest, DIGEST_SIZE);
            layer_finish(&layer);
        }
        unpack_top(ret);
    }
}

static char *list_of(const struct stack *stack)
{
    struct sandbox *sandbox = open_on_all((const char **)stack->paths, stack->count);
    char *text = act(sandbox, 0, 0, false);
    sandbox_close(&sandbox);
    return text;
}

static void expect_merged(const struct stack *of, size_t from, size_t to, const char *wanted, unsigned seed)
{
    struct stack merged, again;
    merge(of, from, to, &merged);
    merge(of, from, to, &again);
    assert_int_equal(merged.count, of->count - (to - from) + 1);
    AUTO_FREE char *seen = list_of(&merged);
    expect_same(seen, wanted, seed, "what was merged");
    for (size_t i = 0; i < merged.count; i++)
        assert_string_equal(merged.digests[i], again.digests[i]);
    finish_stack(&merged);
    finish_stack(&again);
}

static void do_merges(unsigned seed)
{
    struct stack stack = {0};
    for (unsigned i = 0; i < STACK; i++)
        add_layer(&stack, seed + i);
    AUTO_FREE char *wanted = list_of(&stack);
    expect_merged(&stack, 0, STACK, wanted, seed);
    expect_merged(&stack, 1, STACK, wanted, seed);
    expect_merged(&stack, 1, STACK - 1, wanted, seed);
    finish_stack(&stack);
}

/* ---- rounds --------------------------------------------------------------------------------------- */

static unsigned number_of(const char *name, unsigned otherwise)
{
    const char *text = getenv(name);
    return text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

static unsigned seed_now;

static void one_round(void) { do_round(seed_now); }

static void one_merge(void) { do_merges(seed_now); }

static void do_rounds(void (*round)(void), unsigned usual)
{
    unsigned seed = number_of("SLUICE_LAYER_SEED", 1), rounds = number_of("SLUICE_LAYER_ROUNDS", usual);
    for (unsigned i = 0; i < rounds; i++) {
        seed_now = seed + 2 * i;
        in_fiber(round);
        assert_int_equal(dirtree_remove(cache), 0);
        assert_int_equal(mkdir(cache, 0755), 0);
    }
}

static void what_was_left_is_there_again_entry_by_entry(void **state)
{
    (void)state;
    do_rounds(one_round, ROUNDS);
}

static void layers_that_become_one_show_the_same_whatever_lies_below(void **state)
{
    (void)state;
    do_rounds(one_merge, ROUNDS / 4);
}

static int set_up_layers(void **state)
{
    int code = set_up(state);
    if (code == 0) {
        make_dir(store, sizeof(store), "store");
        make_dir(cache, sizeof(cache), "cache");
    }
    return code;
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_left_is_there_again_entry_by_entry, set_up_layers, tear_down),
        cmocka_unit_test_setup_teardown(layers_that_become_one_show_the_same_whatever_lies_below, set_up_layers,
                                        tear_down)};
    return cmocka_run_group_tests_name("layer random", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
