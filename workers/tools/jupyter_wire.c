#include "workers/tools/jupyter_wire.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <zmq.h>

#include "common/cleanup.h"

enum { PARTS = 4, SIGNATURE = 64, FRAMES_MAX = 64, PASSED_OVER_MAX = 256 };

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

bool jupyter_send(void *socket, const char *key, const char *session, const char *type,
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
    struct slice parts[PARTS] = {slice_from_str(header), slice_from_str("{}"),
                                 slice_from_str("{}"), slice_from_str(body)};
    if (!sign(key, parts, signature) ||
        zmq_send(socket, delimiter, strlen(delimiter), ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0)
        return false;
    bool sent = zmq_send(socket, signature, SIGNATURE, ZMQ_SNDMORE | ZMQ_DONTWAIT) >= 0;
    for (size_t i = 0; i < PARTS; i++)
        sent &= zmq_send(socket, parts[i].data, parts[i].len,
                         ZMQ_DONTWAIT | (i + 1 < PARTS ? ZMQ_SNDMORE : 0)) >= 0;
    return sent;
}

/* ---- receiving ----------------------------------------------------------------------- */

struct frames {
    zmq_msg_t each[FRAMES_MAX];
    size_t count;
};

/* All frames of one message, those beyond the bound dropped. False: none is there. */
static bool take_frames(void *socket, struct frames *ret)
{
    ret->count = 0;
    for (;;) {
        zmq_msg_t spare, *frame = ret->count < FRAMES_MAX ? &ret->each[ret->count] : &spare;
        zmq_msg_init(frame);
        if (zmq_msg_recv(frame, socket, ZMQ_DONTWAIT) < 0) {
            zmq_msg_close(frame);
            return ret->count > 0;
        }
        bool more = zmq_msg_more(frame);
        if (frame == &spare)
            zmq_msg_close(frame);
        else
            ret->count++;
        if (!more)
            return true;
    }
}

static struct slice frame_at(struct frames *frames, size_t i)
{
    return i < frames->count ? slice_of(zmq_msg_data(&frames->each[i]), zmq_msg_size(&frames->each[i]))
                             : (struct slice){0};
}

static json_t *load_object(struct slice text)
{
    json_t *json = json_loadb((const char *)text.data, text.len, 0, NULL);
    if (json_is_object(json))
        return json;
    json_decref(json);
    return NULL;
}

static bool read_message(struct frames *frames, const char *key, struct jupyter_message *ret)
{
    size_t at = 0;
    char expected[SIGNATURE + 1];
    while (at < frames->count && !slice_is(frame_at(frames, at), delimiter))
        at++;
    if (at + 1 + PARTS >= frames->count)
        return false;
    struct slice signature = frame_at(frames, at + 1), parts[PARTS];
    for (size_t i = 0; i < PARTS; i++)
        parts[i] = frame_at(frames, at + 2 + i);
    if (signature.len != SIGNATURE || !sign(key, parts, expected) ||
        CRYPTO_memcmp(signature.data, expected, SIGNATURE) != 0)
        return false;
    *ret = (struct jupyter_message){load_object(parts[0]), load_object(parts[1]), load_object(parts[3])};
    if (ret->header && ret->parent && ret->content)
        return true;
    jupyter_message_finish(ret);
    return false;
}

int jupyter_receive(void *socket, const char *key, struct jupyter_message *ret)
{
    static __thread struct frames frames;
    for (int passed = 0; passed < PASSED_OVER_MAX && take_frames(socket, &frames); passed++) {
        bool good = read_message(&frames, key, ret);
        for (size_t i = 0; i < frames.count; i++)
            zmq_msg_close(&frames.each[i]);
        if (good)
            return 1;
    }
    return 0;
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
