/* client.c - who asks: a harness that goes on with its conversation, or the engine's own client. */
#include <jansson.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/harness/harness.h"
#include "common/base/buffer.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"

static int connect_to(int port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        give_up("a client", "it cannot connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    return fd;
}

static void send_request(int fd, const char *path, const char *body)
{
    AUTO_BUFFER out = {0};
    buffer_printf(&out,
                  "POST %s HTTP/1.1\r\nHost: m\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                  path, strlen(body), body);
    for (size_t at = 0; at < out.len;) {
        const ssize_t sent = send(fd, out.data + at, out.len - at, MSG_NOSIGNAL);
        if (sent <= 0)
            give_up("a client", "it cannot send");
        at += (size_t)sent;
    }
}

/* By its length, or the last of its chunks. */
static bool is_whole(const struct buffer *in)
{
    const char *text = (char *)in->data, *end = strstr(text, "\r\n\r\n"), *len = strstr(text, "Content-Length: ");
    if (!end)
        return false;
    if (len && len < end)
        return in->len >= (size_t)(end + 4 - text) + strtoull(len + 16, NULL, 10);
    return in->len > 5 && memcmp(in->data + in->len - 5, "0\r\n\r\n", 5) == 0;
}

/* All of an answer; when its first text came. */
static void read_answer(int fd, const char *text_mark, struct buffer *in, int64_t *ret_first_us)
{
    *ret_first_us = 0;
    buffer_clear(in);
    do {
        char *room = (char *)buffer_reserve(in, 1 << 18);
        const ssize_t got = room ? recv(fd, room, (1 << 18) - 1, 0) : 0;
        if (got <= 0)
            give_up("a client", "the answer broke off");
        in->len += (size_t)got;
        in->data[in->len] = '\0';
        if (*ret_first_us == 0 && strstr((char *)in->data, text_mark))
            *ret_first_us = clock_us();
    } while (!is_whole(in));
    if (strncmp((char *)in->data, "HTTP/1.1 200", 12) != 0)
        give_up("a client was refused", (char *)in->data);
}

static void ask(int fd, const char *path, const char *body, const char *text_mark, struct buffer *in)
{
    int64_t first_us;
    const int64_t began_us = clock_us();
    send_request(fd, path, body);
    read_answer(fd, text_mark, in, &first_us);
    if (shared->calls == CALLS_MAX)
        return;
    shared->call_us[shared->calls] = (uint32_t)(clock_us() - began_us);
    shared->lag_us[shared->calls++] = (uint32_t)(first_us > shared->first_us ? first_us - shared->first_us : 0);
}

/* ---- a harness ------------------------------------------------------------------------------------ */

static json_t *message(const char *role, const char *text)
{
    return json_pack("{s:s, s:s}", "role", role, "content", text);
}

/* What the model says is known. */
static char *reply_text(void)
{
    AUTO_BUFFER text = {0};
    for (size_t i = 0; i + 1 < TURN; i++)
        buffer_append(&text, &"lorem "[i % 6], 1);
    while (text.len > 0 && text.data[text.len - 1] == ' ')
        text.len--;
    return buffer_take_str(&text);
}

/* Prompts of 4,000 tokens in the middle of it. */
static void converse(int port, size_t turns, bool is_stream)
{
    AUTO_BUFFER words = {0}, in = {0};
    AUTO_FREE char *reply = reply_text();
    for (size_t i = 0; i < PROMPT - TURNS * TURN / 2; i++)
        buffer_append(&words, &"ipsum "[i % 6], 1);
    AUTO_FREE char *first = buffer_take_str(&words);
    json_t *body = json_pack("{s:s, s:b, s:[]}", "model", "m", "stream", is_stream, "messages");
    json_t *messages = json_object_get(body, "messages");
    json_array_append_new(messages, message("user", first));
    const int fd = connect_to(port);
    for (size_t turn = 0; turn < turns; turn++) {
        AUTO_FREE char *text = json_dumps(body, JSON_COMPACT);
        ask(fd, "/v1/chat/completions", text, "\"content\":\"l", &in);
        json_array_append_new(messages, message("assistant", reply));
        json_array_append_new(messages, message("user", "go on"));
    }
    close(fd);
    json_decref(body);
}

pid_t start_harness(const int *ports, size_t count, size_t turns, bool is_stream)
{
    const pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (size_t i = 0; i < count; i++)
        converse(ports[i], turns, is_stream);
    _exit(0);
}

/* ---- the engine's own ------------------------------------------------------------------------------ */

static char *direct_body(bool is_stream)
{
    AUTO_BUFFER body = {0};
    buffer_printf(
        &body,
        "{\"model\":\"bench\",\"stream\":%s,\"return_token_ids\":true,\"max_tokens\":%d,\"logprobs\":0,\"prompt\":[",
        is_stream ? "true" : "false", TURN);
    for (size_t i = 0; i < PROMPT; i++)
        buffer_printf(&body, "%s%u", i ? "," : "", (unsigned)"ipsum "[i % 6]);
    buffer_append_str(&body, "]}");
    return buffer_take_str(&body);
}

pid_t start_direct(int port, size_t count, bool is_stream)
{
    const pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    AUTO_FREE char *body = direct_body(is_stream);
    AUTO_BUFFER in = {0};
    const int fd = connect_to(port);
    for (size_t i = 0; i < count; i++)
        ask(fd, "/v1/completions", body, "\"text\":\"l", &in);
    _exit(0);
}
