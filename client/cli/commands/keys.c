/* keys.c - `sluice keys`: who may be what. */
#include "client/cli/commands/keys.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include "client/cli/command.h"
#include "client/cli/connect.h"
#include "client/json/json.h"
#include "common/base/sanitize.h"
#include "common/net/token.h"

struct keys_options {
    const char *dir;
    bool json;
};

enum { PATH_SIZE = 4096, ROLES = ROLE_BROKER };

static bool format_path(char path[PATH_SIZE], const char *format, const char *dir, const char *role, const char *name)
{
    if (snprintf(path, PATH_SIZE, format, dir, role, name) < PATH_SIZE)
        return true;
    cli_say("%s: the path is too long", dir);
    return false;
}

static bool cert_path(char path[PATH_SIZE], const char *dir, enum key_role role, const char *name)
{
    return format_path(path, "%s/trusted/%s/%s.pub", dir, key_role_name(role), name);
}

static bool own_path(char path[PATH_SIZE], const char *dir, const char *name)
{
    return format_path(path, "%s/%s%s.key", dir, "", name);
}

static bool make_pair(struct key *key)
{
    if (zmq_curve_keypair(key->public_text, key->secret_text) == 0)
        return true;
    cli_say("this libzmq makes no CURVE keys: %s", zmq_strerror(errno));
    return false;
}

static bool write_key(const char *path, const struct key *key)
{
    struct fail fail;
    if (key_write(path, key, &fail) == 0)
        return true;
    cli_say("%s", fail.text);
    return false;
}

/* Of --dir or the argument at that place; NULL after saying why. */
static const char *directory(const struct invocation *in, size_t place)
{
    const struct keys_options *options = in->options;
    const char *argument = in->arguments[place];
    if (options->dir && argument)
        cli_usage(in->command, "the directory is said twice: '%s' and --dir", argument);
    else if (!options->dir && !argument)
        cli_usage(in->command, "--dir DIR is missing");
    else
        return options->dir ? options->dir : argument;
    return NULL;
}

/* ---- init ------------------------------------------------------------------------------------ */

static bool make_dir(const char *path, mode_t mode)
{
    if (mkdir(path, mode) == 0 || errno == EEXIST)
        return true;
    cli_say("cannot make %s: %s", path, strerror(errno));
    return false;
}

static bool make_folders(const char *dir)
{
    char path[PATH_SIZE];
    if (!make_dir(dir, 0700) || !format_path(path, "%s/trusted%s%s", dir, "", "") || !make_dir(path, 0755))
        return false;
    for (int role = 0; role < ROLES; role++)
        if (!format_path(path, "%s/trusted/%s%s", dir, key_role_name((enum key_role)role), "") || !make_dir(path, 0755))
            return false;
    return true;
}

static int run_init(const struct invocation *in)
{
    const char *dir = directory(in, 0);
    if (!dir)
        return EXITS_USAGE;
    char path[PATH_SIZE];
    struct key key = {.role = ROLE_BROKER, .name = "broker"};
    bool good = make_folders(dir) && own_path(path, dir, "broker") && make_pair(&key) && write_key(path, &key);
    key_wipe(&key);
    if (good)
        printf("made %s: start the broker with --keys %s\n", path, dir);
    return good ? EXITS_OK : EXITS_FAILED;
}

/* ---- add ------------------------------------------------------------------------------------- */

static bool read_broker(const char *dir, struct key *ret)
{
    char path[PATH_SIZE];
    struct fail fail;
    if (!own_path(path, dir, "broker"))
        return false;
    int code = key_read(path, ret, &fail);
    if (code == -ENOENT)
        cli_say("%s is not there: make it with 'sluice keys init %s'", path, dir);
    else if (code)
        cli_say("%s", fail.text);
    key_wipe(ret);
    return code == 0;
}

/* The certificate first: a key that was handed out and that nobody knows is worse than the reverse. */
static bool add_key(const char *dir, enum key_role role, const char *name, char own[PATH_SIZE])
{
    char cert[PATH_SIZE];
    struct key broker, key = {.role = role};
    if (!read_broker(dir, &broker) || !cert_path(cert, dir, role, name) || !own_path(own, dir, name))
        return false;
    if (access(own, F_OK) == 0) {
        cli_say("%s exists already: a name has one key", own);
        return false;
    }
    memcpy(key.name, name, strlen(name) + 1);
    if (!make_pair(&key))
        return false;
    memcpy(key.broker_text, broker.public_text, sizeof(key.broker_text));
    struct key shown = key;
    key_wipe(&shown);
    bool good = write_key(cert, &shown) && write_key(own, &key);
    key_wipe(&key);
    return good;
}

static int run_add(const struct invocation *in)
{
    char **words = in->arguments;
    const char *dir = directory(in, 2);
    enum key_role role;
    char own[PATH_SIZE];
    if (!dir)
        return EXITS_USAGE;
    if (!key_role_parse(words[0], &role) || role == ROLE_BROKER)
        return cli_usage(&command_keys, "'%s' is not one of trainer, worker, admin", words[0]);
    if (!key_name_is_valid(words[1]) || strcmp(words[1], "broker") == 0)
        return cli_usage(&command_keys, "'%s' is not a name: 1 to 64 of A-Z a-z 0-9 . _ -", words[1]);
    if (!add_key(dir, role, words[1], own))
        return EXITS_FAILED;
    printf("made %s: hand it to %s, who is now known as %s\n", own, words[1], words[0]);
    return EXITS_OK;
}

bool keys_ensure(const char *dir, enum key_role role, const char *name, char *ret_path, size_t size)
{
    char own[PATH_SIZE], cert[PATH_SIZE];
    if (!own_path(own, dir, name) || !cert_path(cert, dir, role, name) ||
        snprintf(ret_path, size, "%s", own) >= (int)size)
        return false;
    return (access(own, F_OK) == 0 && access(cert, F_OK) == 0) || add_key(dir, role, name, own);
}

/* ---- list and remove --------------------------------------------------------------------------- */

static int compare(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

static int is_cert(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);
    return entry->d_name[0] != '.' && len > 4 && strcmp(entry->d_name + len - 4, ".pub") == 0;
}

static void list_one(const char *folder, const char *file, enum key_role role, bool json)
{
    char path[PATH_SIZE + 256];
    struct key key;
    struct fail fail;
    snprintf(path, sizeof(path), "%s/%s", folder, file);
    if (key_read(path, &key, &fail))
        cli_say("%s", fail.text);
    else if (key.role != role || strncmp(key.name, file, strlen(file) - 4) != 0)
        cli_say("%s: its role or name is not that of its path; the broker does not go by it", path);
    else if (json) {
        printf("{\"role\": \"%s\", \"name\": \"%s\", \"key\": ", key_role_name(role), key.name);
        json_text(stdout, key.public_text);
        printf("}\n");
    } else
        sanitize_print(stdout, "%-8s %-24s %s\n", key_role_name(role), key.name, key.public_text);
}

static int run_list(const struct invocation *in)
{
    const struct keys_options *options = in->options;
    const char *dir = directory(in, 0);
    if (!dir)
        return EXITS_USAGE;
    for (int role = 0; role < ROLES; role++) {
        char folder[PATH_SIZE];
        struct dirent **entries;
        if (!format_path(folder, "%s/trusted/%s%s", dir, key_role_name((enum key_role)role), ""))
            return EXITS_FAILED;
        int count = scandir(folder, &entries, is_cert, compare);
        if (count < 0) {
            cli_say("cannot read %s: %s", folder, strerror(errno));
            return EXITS_FAILED;
        }
        for (int i = 0; i < count; i++) {
            list_one(folder, entries[i]->d_name, (enum key_role)role, options->json);
            free(entries[i]);
        }
        free(entries);
    }
    return EXITS_OK;
}

static int run_remove(const struct invocation *in)
{
    const char *name = in->arguments[0], *dir = directory(in, 1);
    bool found = false;
    char path[PATH_SIZE];
    if (!dir)
        return EXITS_USAGE;
    if (!key_name_is_valid(name) || strcmp(name, "broker") == 0)
        return cli_usage(&command_keys, "'%s' is not a name", name);
    for (int role = 0; role < ROLES; role++) {
        if (!cert_path(path, dir, (enum key_role)role, name))
            return EXITS_FAILED;
        if (unlink(path) == 0)
            found = true;
        else if (errno != ENOENT) {
            cli_say("cannot remove %s: %s", path, strerror(errno));
            return EXITS_FAILED;
        }
    }
    if (own_path(path, dir, name) && unlink(path) == 0)
        printf("removed %s\n", path);
    if (!found) {
        cli_say("nobody is known as '%s' in %s", name, dir);
        return EXITS_FAILED;
    }
    printf("the broker no longer knows %s\n", name);
    return EXITS_OK;
}

/* ---- token -------------------------------------------------------------------------------------- */

static int run_token(const struct invocation *in)
{
    const struct keys_options *options = in->options;
    char token[TOKEN_SIZE];
    struct key key;
    struct fail fail;
    if (options->dir)
        return cli_usage(in->command, "token takes a key file, and no --dir");
    int code = key_read_own(in->arguments[0], &key, &fail);
    if (!code)
        code = token_format(&key, token, &fail);
    key_wipe(&key);
    if (code)
        cli_say("%s", fail.text);
    else
        puts(token);
    explicit_bzero(token, sizeof(token));
    return code ? EXITS_FAILED : EXITS_OK;
}

/* ---- the command ---------------------------------------------------------------------------- */

static const struct cmdline_verb verbs[] = {
    {"init", "[DIR]", run_init},  {"add", "trainer|worker|admin NAME [DIR]", run_add},
    {"list", "[DIR]", run_list},  {"remove", "NAME [DIR]", run_remove},
    {"token", "FILE", run_token},
};

static const struct option options[] = {
    {"dir", OPTION_TEXT, offsetof(struct keys_options, dir), "DIR",
     "The certificate directory; it may also be the last argument."},
    {"json", OPTION_FLAG, offsetof(struct keys_options, json), NULL,
     "Print {\"role\": ..., \"name\": ..., \"key\": ...} a line; the key is the public one.", .of = "list"},
};

const struct command command_keys = {
    COMMAND_LINE("keys"),
    .line.verbs = verbs,
    .line.verb_count = ROWS(verbs),
    .line.brief = "Makes, lists and removes the keys that say who may be what",
    .line.doc = "`init` makes DIR, with the broker's key in it. `add` makes DIR/NAME.key, which "
                "you hand to NAME, and\n"
                "DIR/trusted/ROLE/NAME.pub, by which the broker knows it. `remove` takes both "
                "away: what NAME sends\n"
                "is refused within a second, on open connections, too. The broker need not be "
                "started again.\n"
                "`token` prints a key file as one word, for the gateway (Authorization: Bearer TOKEN): keep it as you\n"
                "keep the file.\n",
    .line.example = "sluice keys init keys\n"
                    "sluice keys add trainer alice --dir keys\n"
                    "sluice keys add worker node7 --dir keys\n"
                    "sluice broker --keys keys --bind tcp://10.0.0.1 --data /var/lib/sluice "
                    "--store /shared/sluice/store\n"
                    "sluice status --broker tcp://10.0.0.1:5750 --key alice.key\n",
    .line.tables[0] = {.rows = options, .count = ROWS(options)},
    .options_size = sizeof(struct keys_options),
};
