/*
 * An engine for bench/nodes/nodes.py: llama.cpp's HTTP interface, whose calls take as long as tokens drawn from a
 * distribution would. One thread; the answers wait in an agenda.
 *
 *   bench_nodes_engine PORT ADDRESS TOKENS_PER_S TURNS TURNS TOKENS TOKENS TOOL_MS TOOL_MS SEED
 *
 * Turns, tokens and tools are uniform between the two. A reply is a bash block that sleeps as long as a tool would
 * work; the last one of a rollout ends it, at a turn drawn from how many there were so far. Ids 0 to 255 are bytes.
 * Prints "ready" when it listens.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "broker/simulate/agenda.h"
#include "common/base/buffer.h"
#include "common/base/descriptors.h"
#include "common/base/prng.h"
#include "common/base/clock.h"

enum { TURN_START = 256, TURN_END = 257, CONTEXT = 1 << 18, CONNECTIONS_MAX = 16384, REPLY_MAX = 8192 };

struct peer {
    struct buffer in, out;
    size_t sent;
    uint32_t life; /* tells an answer for an earlier peer of this descriptor from one for this */
};

static struct peer peers[CONNECTIONS_MAX];
static struct agenda answers; /* by milliseconds: what: descriptor, kind: its life */
static uint64_t prng;
static int polling;
static struct {
    double tokens_per_s;
    unsigned turns[2], tokens[2], tool_ms[2];
} load;

static unsigned between(const unsigned range[2])
{
    return range[0] + (unsigned)(prng_uniform(&prng) * (range[1] - range[0] + 1));
}

/* ---- what the model says ----------------------------------------------------------------------- */

static void encode(json_t *ids, const char *text, bool specials)
{
    while (*text) {
        bool starts = specials && strncmp(text, "<|im_start|>", 12) == 0;
        bool ends = specials && strncmp(text, "<|im_end|>", 10) == 0;
        json_array_append_new(ids, json_integer(starts ? TURN_START : ends ? TURN_END : (unsigned char)*text));
        text += starts ? 12 : ends ? 10 : 1;
    }
}

/* The assistant's turns in these ids, the one that is to come among them. */
static unsigned turns_in(const json_t *prompt)
{
    unsigned turns = 0;
    for (size_t i = 0; i + 1 < json_array_size(prompt); i++)
        turns += json_integer_value(json_array_get(prompt, i)) == TURN_START &&
                 json_integer_value(json_array_get(prompt, i + 1)) == 'a';
    return turns;
}

/* Whether turn `turn` is the last: as if their number had been drawn at the start. */
static bool is_last(unsigned turn)
{
    if (turn < load.turns[0])
        return false;
    return turn >= load.turns[1] || prng_uniform(&prng) < 1.0 / (load.turns[1] + 1 - turn);
}

static size_t write_reply(char *text, unsigned turn)
{
    char block[128];
    if (is_last(turn))
        snprintf(block, sizeof(block), "\n```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```");
    else
        snprintf(block, sizeof(block), "\n```bash\nsleep %.3f\n```", between(load.tool_ms) / 1000.0);
    size_t len = strlen(block), wanted = between(load.tokens) - 1;
    size_t pad = wanted > len ? wanted - len : 0;
    pad = pad + len < REPLY_MAX ? pad : REPLY_MAX - len - 1;
    memset(text, 'x', pad);
    memcpy(text + pad, block, len + 1);
    return pad + len;
}

/* As of llama.cpp's server: each token with the bytes that it says. */
static json_t *entries_of(const json_t *ids)
{
    json_t *entries = json_array(), *id;
    size_t i;
    json_array_foreach(ids, i, id)
    {
        json_t *bytes = json_array();
        if (json_integer_value(id) < TURN_START)
            json_array_append(bytes, id);
        json_array_append_new(entries, json_pack("{s:O, s:s, s:o, s:f, s:[]}", "id", id, "token", "", "bytes", bytes,
                                                 "logprob", -0.25, "top_logprobs"));
    }
    return entries;
}

static json_t *complete(const json_t *request, double *delay_ms)
{
    char text[REPLY_MAX + 1];
    const json_t *prompt = json_object_get(request, "prompt"), *limit = json_object_get(request, "n_predict");
    size_t len = write_reply(text, turns_in(prompt)), most = limit ? (size_t)json_integer_value(limit) : SIZE_MAX;
    bool ends = len < most; /* with a token of its own */
    if (!ends)
        text[len = most] = '\0';
    json_t *ids = json_array();
    encode(ids, text, false);
    if (ends)
        json_array_append_new(ids, json_integer(TURN_END));
    *delay_ms = (double)json_array_size(ids) / load.tokens_per_s * 1000;
    return json_pack("{s:s, s:o, s:s, s:I, s:i, s:o}", "content", text, "completion_probabilities", entries_of(ids),
                     "stop_type", ends ? "eos" : "limit", "tokens_evaluated", (json_int_t)json_array_size(prompt),
                     "timings/cache_n", 0, "tokens", ids);
}

/* ---- the other routes ------------------------------------------------------------------------------ */

static json_t *tokenize(const json_t *request)
{
    json_t *ids = json_array();
    const char *text = json_string_value(json_object_get(request, "content"));
    encode(ids, text ? text : "", !json_is_false(json_object_get(request, "parse_special")));
    return json_pack("{s:o}", "tokens", ids);
}

static json_t *detokenize(const json_t *request)
{
    struct buffer text = {0};
    size_t i;
    json_t *id;
    json_array_foreach(json_object_get(request, "tokens"), i, id)
    {
        json_int_t value = json_integer_value(id);
        buffer_append_str(&text, value == TURN_START ? "<|im_start|>" : value == TURN_END ? "<|im_end|>" : "");
        if (value < TURN_START)
            buffer_append(&text, &(char){(char)value}, 1);
    }
    json_t *answer = json_pack("{s:s%}", "content", text.len ? (char *)text.data : "", text.len);
    buffer_finish(&text);
    return answer ? answer : json_pack("{s:s}", "content", "");
}

static json_t *apply_template(const json_t *request)
{
    struct buffer text = {0};
    size_t i;
    json_t *message;
    json_array_foreach(json_object_get(request, "messages"), i, message)
        buffer_printf(&text, "<|im_start|>%s\n%s<|im_end|>\n", json_string_value(json_object_get(message, "role")),
                      json_string_value(json_object_get(message, "content")));
    buffer_printf(&text, "<|im_start|>assistant\n");
    json_t *answer = json_pack("{s:s%}", "prompt", (char *)text.data, text.len);
    buffer_finish(&text);
    return answer;
}

static json_t *props(void)
{
    return json_pack("{s:{s:i}, s:i, s:s, s:s, s:s}", "default_generation_settings", "n_ctx", CONTEXT, "total_slots", 1,
                     "eos_token", "<|im_end|>", "model_path", "model.gguf", "chat_template", "chatml");
}

static json_t *answer_to(const char *path, const json_t *request, double *delay_ms)
{
    static const struct {
        const char *path;
        json_t *(*answer)(const json_t *request);
    } routes[] = {{"/tokenize", tokenize}, {"/detokenize", detokenize}, {"/apply-template", apply_template}};
    if (strcmp(path, "/completion") == 0)
        return complete(request, delay_ms);
    for (size_t i = 0; i < sizeof(routes) / sizeof(*routes); i++)
        if (strcmp(path, routes[i].path) == 0)
            return routes[i].answer(request);
    return strcmp(path, "/props") == 0    ? props()
           : strcmp(path, "/health") == 0 ? json_pack("{s:s}", "status", "ok")
           : strcmp(path, "/slots") == 0  ? json_array()
                                          : NULL;
}

/* ---- connections ------------------------------------------------------------------------------------- */

static void forget(int fd)
{
    struct peer *peer = &peers[fd];
    buffer_finish(&peer->in);
    buffer_finish(&peer->out);
    peer->life++;
    close(fd);
}

static void send_more(int fd)
{
    struct peer *peer = &peers[fd];
    while (peer->sent < peer->out.len) {
        ssize_t sent = send(fd, peer->out.data + peer->sent, peer->out.len - peer->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent <= 0)
            break;
        peer->sent += (size_t)sent;
    }
    bool rests = peer->sent < peer->out.len;
    struct epoll_event event = {.events = EPOLLIN | (rests ? EPOLLOUT : 0), .data.fd = fd};
    epoll_ctl(polling, EPOLL_CTL_MOD, fd, &event);
    if (!rests)
        buffer_finish(&peer->out); /* thousands wait: each without memory for it */
}

static void take_request(int fd, const char *path, const char *body, size_t len)
{
    struct peer *peer = &peers[fd];
    double delay_ms = 0;
    json_t *request = len ? json_loadb(body, len, 0, NULL) : NULL;
    json_t *answer = answer_to(path, request, &delay_ms);
    char *text = json_dumps(answer ? answer : request, JSON_COMPACT | JSON_ENCODE_ANY);
    peer->sent = 0;
    buffer_printf(&peer->out, "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                  answer ? "200 OK" : "404 Not Found", text ? strlen(text) : 0, text ? text : "");
    free(text);
    json_decref(answer);
    json_decref(request);
    if (!agenda_push(&answers, (struct due){(double)clock_ms() + delay_ms, (uint32_t)fd, peer->life}))
        exit(1);
}

static void read_more(int fd)
{
    struct peer *peer = &peers[fd];
    char bytes[65536], path[64] = "";
    ssize_t got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got <= 0) {
        if (got == 0 || errno != EAGAIN)
            forget(fd);
        return;
    }
    if (!buffer_append(&peer->in, bytes, (size_t)got) || !buffer_append(&peer->in, "", 1))
        exit(1);
    peer->in.len--; /* a string, for the header */
    const char *head = (char *)peer->in.data, *end = strstr(head, "\r\n\r\n");
    const char *length = strcasestr(head, "content-length:");
    if (!end)
        return;
    size_t len = length && length < end ? strtoull(length + 15, NULL, 10) : 0;
    size_t at = (size_t)(end + 4 - head);
    if (peer->in.len < at + len)
        return;
    sscanf(head, "%*s %63s", path);
    take_request(fd, path, head + at, len);
    buffer_finish(&peer->in);
}

static void welcome(int listening)
{
    int fd = accept(listening, NULL, NULL);
    if (fd < 0 || fd >= CONNECTIONS_MAX) {
        close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(polling, EPOLL_CTL_ADD, fd, &event);
}

static int answer_due(void)
{
    for (; answers.count; agenda_pop(&answers)) {
        double left = answers.items[0].at - (double)clock_ms();
        if (left > 0)
            return (int)left + 1;
        if (peers[answers.items[0].what].life == answers.items[0].kind)
            send_more((int)answers.items[0].what);
    }
    return -1;
}

static _Noreturn void serve(int listening)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listening}, events[256];
    polling = epoll_create1(0);
    epoll_ctl(polling, EPOLL_CTL_ADD, listening, &event);
    printf("ready\n");
    fflush(stdout);
    for (;;) {
        int count = epoll_wait(polling, events, 256, answer_due());
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd == listening)
                welcome(fd);
            else if (events[i].events & (EPOLLERR | EPOLLHUP))
                forget(fd);
            else if (events[i].events & EPOLLOUT)
                send_more(fd);
            else
                read_more(fd);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc != 11)
        return 2;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1]))};
    descriptors_allow_all();
    signal(SIGPIPE, SIG_IGN);
    load.tokens_per_s = atof(argv[3]);
    unsigned *const ranges[] = {load.turns, load.tokens, load.tool_ms};
    for (int i = 0; i < 6; i++)
        ranges[i / 2][i % 2] = (unsigned)atoi(argv[4 + i]);
    prng = prng_of(strtoull(argv[10], NULL, 10), 0, 0);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (inet_pton(AF_INET, argv[2], &address.sin_addr) != 1 ||
        bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 4096) < 0) {
        fprintf(stderr, "bench_nodes_engine: %s:%s: %s\n", argv[2], argv[1], strerror(errno));
        return 1;
    }
    serve(fd);
}
