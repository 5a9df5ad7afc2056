#include "workers/images/exports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buffer.h"
#include "common/base/cleanup.h"

static const char name_characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
static const char default_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

enum quoting { BARE, DOUBLE, SINGLE };

struct reader {
    const struct image_config *config;
    const char *at; /* NUL-ended: a line */
    struct buffer value;
};

static void put(struct reader *reader, const char *text, size_t len) { buffer_append(&reader->value, text, len); }

static bool put_variable(struct reader *reader, const char *name)
{
    const char *value = image_config_get(reader->config, name);
    if (!value && strcmp(name, "PATH") == 0)
        value = default_path;
    if (value)
        put(reader, value, strlen(value));
    return value != NULL;
}

static bool read_part(struct reader *reader, const char *until);

/* `$NAME`, `${NAME}` and `${NAME:-DEFAULT}`, of what is known; false: it takes a shell. */
static bool read_expansion(struct reader *reader)
{
    const bool has_brace = *reader->at == '{';
    reader->at += has_brace;
    const size_t len = strspn(reader->at, name_characters);
    AUTO_FREE char *name = strndup(reader->at, len);
    reader->at += len;
    if (!name || len == 0)
        return false;
    if (!has_brace)
        return put_variable(reader, name);
    const bool has_default = strncmp(reader->at, ":-", 2) == 0 || *reader->at == '-';
    if (!has_default)
        return *reader->at++ == '}' && put_variable(reader, name);
    reader->at += *reader->at == ':' ? 2 : 1;
    const size_t before = reader->value.len;
    if (!read_part(reader, "}"))
        return false;
    const char *known = image_config_get(reader->config, name);
    if (known) {
        reader->value.len = before;
        put(reader, known, strlen(known));
    }
    return *reader->at++ == '}';
}

/* One character, or what begins with one; false: it takes a shell. */
static bool read_one(struct reader *reader, enum quoting *quoting)
{
    const char c = *reader->at++;
    if (c == '\'' && *quoting != DOUBLE)
        *quoting = *quoting == SINGLE ? BARE : SINGLE;
    else if (c == '"' && *quoting != SINGLE)
        *quoting = *quoting == DOUBLE ? BARE : DOUBLE;
    else if (*quoting == SINGLE)
        put(reader, &c, 1);
    else if (c == '$')
        return read_expansion(reader);
    else if (c == '\\' && *reader->at)
        put(reader, reader->at++, 1);
    else if (c == '`' || (*quoting == BARE && strchr("&|;<>()*?[~", c)))
        return false;
    else
        put(reader, &c, 1);
    return true;
}

/* Up to a blank, the line's end or one of `until`, outside of quotes. */
static bool read_part(struct reader *reader, const char *until)
{
    enum quoting quoting = BARE;
    while (*reader->at && (quoting != BARE || !(strchr(" \t", *reader->at) || strchr(until, *reader->at))))
        if (!read_one(reader, &quoting))
            return false;
    return quoting == BARE;
}

static int read_line(const char *line, struct image_config *config)
{
    static const char word[] = "export ";
    line += strspn(line, " \t");
    if (strncmp(line, word, sizeof(word) - 1) != 0)
        return 0;
    line += sizeof(word) - 1;
    line += strspn(line, " \t");
    const size_t len = strspn(line, name_characters);
    AUTO_FREE char *name = strndup(line, len);
    struct reader reader = {.config = config, .at = line + len + 1};
    if (!name || len == 0 || line[len] != '=')
        return 0;
    bool is_known = read_part(&reader, "") && reader.at[strspn(reader.at, " \t")] == '\0';
    buffer_append(&reader.value, "", 1);
    int code = is_known && !reader.value.failed ? image_config_set(config, name, (const char *)reader.value.data) : 0;
    buffer_finish(&reader.value);
    return code == -EINVAL ? 0 : code;
}

int image_config_read_exports(struct slice text, struct image_config *config)
{
    int code = 0;
    for (size_t at = 0; at < text.len && code == 0;) {
        const uint8_t *end = memchr(text.data + at, '\n', text.len - at);
        const size_t len = end ? (size_t)(end - text.data) - at : text.len - at;
        AUTO_FREE char *line = strndup((const char *)text.data + at, len);
        code = line ? read_line(line, config) : -ENOMEM;
        at += len + 1;
    }
    return code;
}
