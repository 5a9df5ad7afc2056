#include "workers/tools/ipython/jupyter_wire.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"

enum { PARTS = 4, SIGNATURE = 64, VALUES_MAX = 1 << 18 };

static const char delimiter[] = "<IDS|MSG>";

void jupyter_random(char ret[JUPYTER_KEY_SIZE])
{
    uint8_t bytes[16];
    while (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
        ;
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}

/* Of header, parent, metadata and content. */
static bool sign(const char *key, const struct slice parts[PARTS], char ret[SIGNATURE + 1])
{
    AUTO_BUFFER all = {0};
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    for (size_t i = 0; i < PARTS; i++)
        buffer_append(&all, parts[i].data, parts[i].len);
    if (all.failed || !HMAC(EVP_sha256(), key, (int)strlen(key), all.data, all.len, digest, &len))
        return false;
    for (size_t i = 0; i < SIGNATURE / 2; i++)
        snprintf(ret + 2 * i, 3, "%02x", digest[i]);
    return true;
}

/* ---- sending ------------------------------------------------------------------------- */

static json_t *make_header(const char *session, const char *type, const char *id)
{
    char date[32];
    time_t now = time(NULL);
    struct tm parts;
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "msg_id", id, "username", "sluice", "session",
                     session, "msg_type", type, "version", "5.3", "date", date);
}

bool jupyter_send(struct jupyter_link *link, const char *key, const char *session, const char *type,
                  const json_t *content, char ret_id[JUPYTER_KEY_SIZE])
{
    char signature[SIGNATURE + 1];
    jupyter_random(ret_id);
    json_t *json = make_header(session, type, ret_id);
    AUTO_FREE char *header = json ? json_dumps(json, JSON_COMPACT) : NULL;
    AUTO_FREE char *body = json_dumps(content, JSON_COMPACT);
    json_decref(json);
    if (!header || !body)
        return false;
    struct slice frames[2 + PARTS] = {slice_from_str(delimiter), slice_of(signature, SIGNATURE),
                                      slice_from_str(header),    slice_from_str("{}"),
                                      slice_from_str("{}"),      slice_from_str(body)};
    return sign(key, frames + 2, signature) && jupyter_link_send(link, frames, 2 + PARTS);
}

/* ---- receiving ----------------------------------------------------------------------- */

/* Three bytes of text can be a value that takes a hundred of memory: there are few enough of them. */
static bool is_modest(struct slice text)
{
    size_t values = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.len; i++) {
        const uint8_t c = text.data[i];
        if (in_string && c == '\\')
            i++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string)
            values += c == ',' || c == '[' || c == '{';
    }
    return values <= VALUES_MAX;
}

static json_t *load_object(struct slice text)
{
    json_t *json = text_is_shallow(text, TEXT_LEVELS_MAX) && is_modest(text)
                       ? json_loadb((const char *)text.data, text.len, 0, NULL)
                       : NULL;
    if (json_is_object(json))
        return json;
    json_decref(json);
    return NULL;
}

static bool read_message(struct jupyter_link *link, const char *key, struct jupyter_message *ret)
{
    size_t at = 0;
    char expected[SIGNATURE + 1];
    while (at < link->frame_count && !slice_is(jupyter_link_frame(link, at), delimiter))
        at++;
    if (at + 1 + PARTS >= link->frame_count)
        return false;
    struct slice signature = jupyter_link_frame(link, at + 1), parts[PARTS];
    for (size_t i = 0; i < PARTS; i++)
        parts[i] = jupyter_link_frame(link, at + 2 + i);
    if (signature.len != SIGNATURE || !sign(key, parts, expected) ||
        CRYPTO_memcmp(signature.data, expected, SIGNATURE) != 0)
        return false;
    *ret = (struct jupyter_message){load_object(parts[0]), load_object(parts[1]), load_object(parts[3])};
    if (ret->header && ret->parent && ret->content)
        return true;
    link->passed_over++;
    jupyter_message_finish(ret);
    return false;
}

int jupyter_receive(struct jupyter_link *link, const char *key, size_t *budget,
                    struct jupyter_message *ret)
{
    int code;
    do
        code = jupyter_link_receive(link, budget);
    while (code == 1 && !read_message(link, key, ret));
    return code;
}

void jupyter_message_finish(struct jupyter_message *message)
{
    json_decref(message->header);
    json_decref(message->parent);
    json_decref(message->content);
    *message = (struct jupyter_message){0};
}

const char *jupyter_type(const struct jupyter_message *message)
{
    const char *type = json_string_value(json_object_get(message->header, "msg_type"));
    return type ? type : "";
}

bool jupyter_answers(const struct jupyter_message *message, const char *id)
{
    const char *parent = json_string_value(json_object_get(message->parent, "msg_id"));
    return parent && strcmp(parent, id) == 0;
}
