#include "common/net/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"

static const char *const role_names[ROLE_COUNT] = {"trainer", "worker", "admin", "broker"};

const char *key_role_name(enum key_role role) { return role_names[role]; }

bool key_role_parse(const char *text, enum key_role *ret)
{
    for (int i = 0; i < ROLE_COUNT; i++)
        if (strcmp(text, role_names[i]) == 0) {
            *ret = (enum key_role)i;
            return true;
        }
    return false;
}

static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/* It becomes the name of a file: nothing that a path or a command line would read otherwise. */
bool key_name_is_valid(const char *name)
{
    size_t len = strlen(name);
    if (len < 1 || len >= KEY_NAME_SIZE || name[0] == '.' || name[0] == '-')
        return false;
    for (const char *at = name; *at; at++)
        if (!strchr(letters, *at) && !strchr("._-", *at))
            return false;
    return true;
}

/* 40 bytes of Z85. */
static bool is_key_text(const char *text)
{
    for (const char *at = text; *at; at++)
        if (!strchr(letters, *at) && !strchr(".-:+=^!/*?&<>()[]{}@%$#", *at))
            return false;
    return strlen(text) == KEY_TEXT_SIZE - 1;
}

/* ---- reading -------------------------------------------------------------------------------- */

static const struct word {
    const char *name;
    size_t offset; /* of a key's text */
} key_words[] = {
    {"public", offsetof(struct key, public_text)},
    {"secret", offsetof(struct key, secret_text)},
    {"broker", offsetof(struct key, broker_text)},
};

/* What is at fault with a line, or NULL. */
static const char *take_line(struct key *key, bool *has_role, const char *word, const char *value)
{
    if (strcmp(word, "role") == 0) {
        if (*has_role)
            return "says its role twice";
        *has_role = true;
        return key_role_parse(value, &key->role) ? NULL : "is not a role: trainer, worker, admin or broker";
    }
    if (strcmp(word, "name") == 0) {
        if (!key_name_is_valid(value))
            return "is not a name: 1 to 64 of A-Z a-z 0-9 . _ -";
        memcpy(key->name, value, strlen(value) + 1);
        return NULL;
    }
    for (size_t i = 0; i < sizeof(key_words) / sizeof(*key_words); i++) {
        if (strcmp(word, key_words[i].name) != 0)
            continue;
        if (!is_key_text(value))
            return "is not a key: 40 characters of Z85";
        memcpy((char *)key + key_words[i].offset, value, KEY_TEXT_SIZE);
        return NULL;
    }
    return "begins with none of role, name, public, secret, broker";
}

static int parse(const char *path, char *text, struct key *ret, struct fail *fail)
{
    bool has_role = false;
    unsigned number = 0;
    for (char *line = text, *next; line; line = next) {
        char word[16], value[80], tail[2];
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        number++;
        line += strspn(line, " \t");
        if (!*line || *line == '#')
            continue;
        int got = sscanf(line, "%15s %79s %1s", word, value, tail);
        const char *wrong = got < 2 || (got == 3 && tail[0] != '#') ? "is not of the form `word value`"
                                                                    : take_line(ret, &has_role, word, value);
        if (wrong)
            return fail_set(fail, -EINVAL, "%s: line %u %s", path, number, wrong);
    }
    if (!has_role || !ret->name[0] || !ret->public_text[0])
        return fail_set(fail, -EINVAL, "%s: the line `%s` is missing", path,
                        !has_role       ? "role"
                        : !ret->name[0] ? "name"
                                        : "public");
    return 0;
}

/* The whole file into text, which has room for KEY_FILE_MAX and an end. */
static int load(const char *path, char *text, struct stat *info, struct fail *fail)
{
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, info) != 0)
        return fail_set(fail, -errno, "cannot read %s: %s", path, strerror(errno));
    if (!S_ISREG(info->st_mode) || info->st_size > KEY_FILE_MAX)
        return fail_set(fail, -EINVAL, "%s: it is not a key file", path);
    ssize_t len = read(fd, text, KEY_FILE_MAX);
    if (len < 0)
        return fail_set(fail, -errno, "cannot read %s: %s", path, strerror(errno));
    text[len] = '\0';
    if (strlen(text) != (size_t)len)
        return fail_set(fail, -EINVAL, "%s: it is not text", path);
    return 0;
}

int key_read(const char *path, struct key *ret, struct fail *fail)
{
    char text[KEY_FILE_MAX + 1];
    struct stat info;
    struct key key = {0};
    int code = load(path, text, &info, fail);
    if (code == 0)
        code = parse(path, text, &key, fail);
    explicit_bzero(text, sizeof(text));
    if (code == 0 && key.secret_text[0] && (info.st_mode & 077))
        code = fail_set(fail, -EACCES, "%s: it holds a secret and others may read it: chmod 600 %s", path, path);
    if (code == 0)
        *ret = key;
    key_wipe(&key);
    return code;
}

int key_read_own(const char *path, struct key *ret, struct fail *fail)
{
    int code = key_read(path, ret, fail);
    if (code)
        return code;
    if (!ret->secret_text[0])
        return fail_set(fail, -EINVAL, "%s: it is a certificate, for the broker to keep: name the file with the secret",
                        path);
    if (!ret->broker_text[0]) {
        key_wipe(ret);
        return fail_set(fail, -EINVAL, "%s: it does not say which broker it is for (`broker KEY`)", path);
    }
    return 0;
}

/* ---- writing -------------------------------------------------------------------------------- */

static bool print_key(int fd, const struct key *key)
{
    int wrote = dprintf(fd, "role %s\nname %s\npublic %s\n", role_names[key->role], key->name, key->public_text);
    if (wrote > 0 && key->secret_text[0])
        wrote = dprintf(fd, "secret %s\n", key->secret_text);
    if (wrote > 0 && key->broker_text[0])
        wrote = dprintf(fd, "broker %s\n", key->broker_text);
    return wrote > 0 && fsync(fd) == 0;
}

int key_write(const char *path, const struct key *key, struct fail *fail)
{
    char other[4096];
    if (snprintf(other, sizeof(other), "%s.XXXXXX", path) >= (int)sizeof(other))
        return fail_set(fail, -ENAMETOOLONG, "%s: the path is too long", path);
    AUTO_CLOSE int fd = mkostemp(other, O_CLOEXEC); /* 0600 */
    if (fd < 0)
        return fail_set(fail, -errno, "cannot write %s: %s", path, strerror(errno));
    bool good = print_key(fd, key) && fchmod(fd, key->secret_text[0] ? 0600 : 0644) == 0 && link(other, path) == 0;
    int code = good ? 0 : -errno;
    unlink(other);
    if (code == -EEXIST)
        return fail_set(fail, code, "%s exists already", path);
    return code ? fail_set(fail, code, "cannot write %s: %s", path, strerror(-code)) : 0;
}

void key_wipe(struct key *key) { explicit_bzero(key->secret_text, sizeof(key->secret_text)); }
