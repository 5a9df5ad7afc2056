/* engine.c - the engine, as vLLM's: /v1/completions of ids, byte tokens, a reply of TURN tokens, each an event. */
#include <jansson.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
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
#include "common/base/utf8.h"

enum { START = 256, END = 257, SPECIALS = 2 };
static const char *const specials[SPECIALS] = {"<|im_start|>", "<|im_end|>"};

/* ---- text and ids -------------------------------------------------------------------------------- */

static size_t put_ids(struct buffer *out, const char *text)
{
    size_t count = 0;
    for (size_t len; *text; text += len, count++) {
        unsigned id = (uint8_t)*text;
        len = 1;
        for (unsigned i = 0; i < SPECIALS; i++)
            if (strncmp(text, specials[i], strlen(specials[i])) == 0) {
                id = START + i;
                len = strlen(specials[i]);
            }
        buffer_printf(out, "%s%u", count ? "," : "", id);
    }
    return count;
}

static void render(const json_t *messages, struct buffer *text)
{
    size_t i;
    const json_t *message;
    json_array_foreach(messages, i, message)
        buffer_printf(text, "<|im_start|>%s\n%s<|im_end|>\n", json_string_value(json_object_get(message, "role")),
                      json_string_value(json_object_get(message, "content")));
    buffer_append_str(text, "<|im_start|>assistant\n");
}

static void answer_tokenize(const char *body, struct buffer *out)
{
    json_t *asked = json_loads(body, 0, NULL);
    const json_t *messages = json_object_get(asked, "messages");
    AUTO_BUFFER text = {0}, ids = {0};
    if (messages)
        render(messages, &text);
    else
        buffer_append_str(&text, json_string_value(json_object_get(asked, "prompt")));
    AUTO_FREE char *all = buffer_take_str(&text);
    const size_t count = put_ids(&ids, all);
    buffer_printf(out, "{\"count\":%zu,\"max_model_len\":1048576,\"tokens\":[%.*s]}", count,
                  SLICE_ARG(buffer_peek(&ids)));
    json_decref(asked);
}

static void answer_detokenize(const char *body, struct buffer *out)
{
    json_t *asked = json_loads(body, 0, NULL);
    AUTO_BUFFER bytes = {0}, text = {0};
    const json_t *id;
    size_t i;
    json_array_foreach(json_object_get(asked, "tokens"), i, id)
    {
        const json_int_t value = json_integer_value(id);
        if (value >= START)
            buffer_append_str(&bytes, value - START < SPECIALS ? specials[value - START] : "");
        else
            buffer_append(&bytes, &(uint8_t){(uint8_t)value}, 1);
    }
    utf8_append_repaired(&text, buffer_peek(&bytes));
    json_t *answer = json_pack("{s:s%}", "prompt", text.data ? (char *)text.data : "", text.len);
    AUTO_FREE char *said = json_dumps(answer, JSON_COMPACT);
    buffer_append_str(out, said ? said : "{}");
    json_decref(answer);
    json_decref(asked);
}

/* ---- sampling ------------------------------------------------------------------------------------ */

static unsigned id_at(size_t i, size_t count)
{
    return i + 1 == TURN && count == TURN ? END : (unsigned)"lorem "[i % 6];
}

static double logprob_at(size_t i) { return -((double)(i * 104729 % 9973) + 1) / 1013.7; }

/* As digits, from the request. */
static struct slice prompt_of(const char *body)
{
    const char *at = strstr(body, "\"prompt\":[");
    at = at ? at + strlen("\"prompt\":[") : "";
    return slice_of(at, strcspn(at, "]"));
}

static size_t count_ids(struct slice digits)
{
    size_t count = digits.len > 0;
    for (size_t i = 0; i < digits.len; i++)
        count += digits.data[i] == ',';
    return count;
}

static size_t tokens_of(const char *body)
{
    const char *at = strstr(body, "\"max_tokens\":");
    const size_t most = at ? strtoull(at + strlen("\"max_tokens\":"), NULL, 10) : 1;
    return most < TURN ? most : TURN;
}

static void answer_whole(const char *body, struct buffer *out)
{
    const struct slice prompt = prompt_of(body);
    const size_t count = tokens_of(body);
    buffer_printf(out, "{\"usage\":{\"prompt_tokens\":%zu},\"choices\":[{\"index\":0,\"text\":\"", count_ids(prompt));
    for (size_t i = 0; i < count && id_at(i, count) != END; i++)
        buffer_printf(out, "%c", id_at(i, count));
    buffer_printf(out, "\",\"finish_reason\":\"%s\",\"prompt_token_ids\":[%.*s],\"token_ids\":[",
                  count == TURN ? "stop" : "length", SLICE_ARG(prompt));
    for (size_t i = 0; i < count; i++)
        buffer_printf(out, "%s%u", i ? "," : "", id_at(i, count));
    buffer_append_str(out, "],\"logprobs\":{\"token_logprobs\":[");
    for (size_t i = 0; i < count; i++)
        buffer_printf(out, "%s%.17g", i ? "," : "", logprob_at(i));
    buffer_append_str(out, "],\"tokens\":[");
    for (size_t i = 0; i < count; i++)
        buffer_printf(out, "%s\"token_id:%u\"", i ? "," : "", id_at(i, count));
    buffer_append_str(out, "],\"top_logprobs\":[{\"token_id:1\":-0.5}]}}]}");
}

static void put_event(struct buffer *out, size_t i, struct slice prompt)
{
    const unsigned id = id_at(i, TURN);
    AUTO_BUFFER first = {0};
    if (i == 0)
        buffer_printf(&first, "\"prompt_token_ids\":[%.*s],", SLICE_ARG(prompt));
    buffer_printf(
        out,
        "data: {\"id\":\"cmpl-x\",\"object\":\"text_completion\",\"created\":1,\"model\":\"bench\",\"choices\":"
        "[{\"index\":0,\"text\":\"%.*s\",%.*s\"token_ids\":[%u],\"finish_reason\":%s,\"logprobs\":{\"tokens\":"
        "[\"token_id:%u\"],\"token_logprobs\":[%.17g]}}]}\n\n",
        id == END ? 0 : 1, id == END ? "" : (char[]){(char)id}, SLICE_ARG(buffer_peek(&first)), id,
        id == END ? "\"stop\"" : "null", id, logprob_at(i));
}

static bool send_all(int fd, const void *data, size_t len)
{
    for (const char *at = data; len > 0;) {
        const ssize_t sent = send(fd, at, len, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        at += sent;
        len -= (size_t)sent;
    }
    return true;
}

static bool send_chunk(int fd, struct slice data)
{
    AUTO_BUFFER chunk = {0};
    buffer_printf(&chunk, "%zx\r\n%.*s\r\n", data.len, SLICE_ARG(data));
    return send_all(fd, chunk.data, chunk.len);
}

/* Each event is sent by itself, at its time. */
static bool stream(int fd, const char *body)
{
    static const char head[] =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    const struct slice prompt = prompt_of(body);
    bool done = send_all(fd, head, sizeof(head) - 1);
    for (size_t i = 0; i < TURN && done; i++) {
        AUTO_BUFFER event = {0};
        put_event(&event, i, prompt);
        if (i > 0 && shared->token_us)
            usleep(shared->token_us);
        if (i == 0)
            shared->first_us = clock_us();
        done = send_chunk(fd, buffer_peek(&event));
    }
    AUTO_BUFFER end = {0};
    buffer_printf(&end, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%zu}}\n\ndata: [DONE]\n\n",
                  count_ids(prompt));
    return done && send_chunk(fd, buffer_peek(&end)) && send_all(fd, "0\r\n\r\n", 5);
}

/* ---- connections --------------------------------------------------------------------------------- */

static bool answer(int fd, const char *path, const char *body)
{
    AUTO_BUFFER json = {0}, out = {0};
    shared->requests++;
    if (strcmp(path, "/v1/completions") == 0 && strstr(body, "\"stream\":true"))
        return stream(fd, body);
    if (strcmp(path, "/v1/completions") == 0)
        answer_whole(body, &json);
    else if (strcmp(path, "/tokenize") == 0)
        answer_tokenize(body, &json);
    else if (strcmp(path, "/detokenize") == 0)
        answer_detokenize(body, &json);
    else if (strcmp(path, "/v1/models") == 0)
        buffer_append_str(&json, "{\"data\":[{\"id\":\"bench\",\"root\":\"bench\",\"max_model_len\":1048576}]}");
    else if (strcmp(path, "/version") == 0)
        buffer_append_str(&json, "{\"version\":\"0.32.0\"}");
    else if (strcmp(path, "/metrics") == 0)
        buffer_append_str(&json, "process_start_time_seconds 1.7e9\n");
    buffer_printf(&out, "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                  json.len ? "200 OK" : "404 Not Found", json.len);
    buffer_append(&out, json.data, json.len);
    return send_all(fd, out.data, out.len);
}

/* The whole of one request; its length, 0 at the end of the connection. */
static size_t read_request(int fd, struct buffer *in, size_t *ret_body)
{
    for (;;) {
        const char *end = in->len ? memmem(in->data, in->len, "\r\n\r\n", 4) : NULL;
        if (end) {
            const char *len = memmem(in->data, in->len, "Content-Length: ", 16);
            *ret_body = (size_t)(end + 4 - (char *)in->data);
            const size_t whole = *ret_body + (len && len < end ? strtoull(len + 16, NULL, 10) : 0);
            if (in->len >= whole)
                return whole;
        }
        char *room = (char *)buffer_reserve(in, 65536);
        const ssize_t got = room ? recv(fd, room, 65535, 0) : 0;
        if (got <= 0)
            return 0;
        in->len += (size_t)got;
        in->data[in->len] = '\0';
    }
}

static void *serve(void *arg)
{
    const int fd = (int)(intptr_t)arg;
    AUTO_BUFFER in = {0};
    size_t body, len;
    while ((len = read_request(fd, &in, &body)) > 0) {
        char path[64] = "";
        sscanf((char *)in.data, "%*s %63s", path);
        if (!answer(fd, path, (char *)in.data + body))
            break;
        buffer_clear(&in); /* nobody sends two at once */
    }
    close(fd);
    return NULL;
}

static _Noreturn void run(int listening)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        const int fd = accept(listening, NULL, NULL);
        pthread_t thread;
        if (fd < 0)
            continue;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd) == 0)
            pthread_detach(thread);
        else
            close(fd);
    }
}

pid_t start_engine(char *url, size_t size)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(fd, (struct sockaddr *)&address, len) < 0 || listen(fd, 4096) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &len) < 0)
        give_up("the engine", "it cannot listen");
    snprintf(url, size, "http://127.0.0.1:%d", ntohs(address.sin_port));
    const pid_t pid = fork();
    if (pid == 0)
        run(fd);
    close(fd);
    return pid;
}
