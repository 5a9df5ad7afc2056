/* server.c - the engine of bench_engines: a process that answers with documents made beforehand. */
#include "bench/engines/engines.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"

/* ---- answers --------------------------------------------------------------------------------- */

uint32_t id_at(size_t i) { return (uint32_t)(300 + i * 7919 % 48000); }

double logprob_at(size_t i) { return -((double)(i * 104729 % 9973) + 1) / 1013.7; }

static void write_ids(struct buffer *out, size_t count, bool with_end)
{
    for (size_t i = 0; i < count; i++)
        buffer_printf(out, "%s%u", i ? "," : "", with_end && i + 1 == count ? (uint32_t)END_ID : id_at(i));
}

/* What they say, but for the end. */
static void write_text(struct buffer *out, size_t count)
{
    for (size_t i = 1; i < count; i++)
        buffer_append_str(out, " word");
}

static void answer_llama(struct buffer *out, size_t count)
{
    buffer_append_str(out, "{\"content\":\"");
    write_text(out, count);
    buffer_append_str(out, "\",\"tokens\":[");
    write_ids(out, count, true);
    buffer_printf(out,
                  "],\"stop_type\":\"eos\",\"tokens_evaluated\":%d,\"timings/cache_n\":%d,"
                  "\"completion_probabilities\":[",
                  PROMPT, PROMPT - 10);
    for (size_t i = 0; i < count; i++) {
        const uint32_t id = i + 1 == count ? (uint32_t)END_ID : id_at(i);
        const double p = logprob_at(i);
        buffer_printf(out,
                      "%s{\"id\":%u,\"token\":\" word\",\"bytes\":[32,119,111,114,100],"
                      "\"logprob\":%.17g,\"top_logprobs\":[{\"id\":%u,\"token\":\" word\","
                      "\"bytes\":[32,119,111,114,100],\"logprob\":%.17g}]}",
                      i ? "," : "", id, p, id, p);
    }
    buffer_append_str(out, "]}");
}

static void answer_vllm(struct buffer *out, size_t count)
{
    buffer_printf(out,
                  "{\"request_id\":\"generate-tokens-x\",\"usage\":{\"prompt_tokens\":%d},"
                  "\"choices\":[{\"index\":0,\"finish_reason\":\"stop\",\"stop_reason\":null,"
                  "\"token_ids\":[",
                  PROMPT);
    write_ids(out, count, true);
    buffer_append_str(out, "],\"weight_versions\":[{\"version\":\"v1\",\"start\":0,\"end\":9}],"
                           "\"logprobs\":{\"content\":[");
    for (size_t i = 0; i < count; i++) {
        const uint32_t id = i + 1 == count ? (uint32_t)END_ID : id_at(i);
        const double p = logprob_at(i);
        buffer_printf(out,
                      "%s{\"token_id\":%u,\"logprob\":%.17g,\"rank\":1,\"top_logprobs\":"
                      "[{\"token_id\":%u,\"logprob\":%.17g,\"rank\":1}]}",
                      i ? "," : "", id, p, id, p);
    }
    buffer_append_str(out, "]}}]}");
}

static void answer_completion(struct buffer *out, size_t count)
{
    buffer_printf(out,
                  "{\"id\":\"cmpl-x\",\"usage\":{\"prompt_tokens\":%d},\"choices\":[{\"index\":0,"
                  "\"text\":\"",
                  PROMPT);
    write_text(out, count);
    buffer_append_str(out, "\",\"finish_reason\":\"stop\",\"token_ids\":[");
    write_ids(out, count, true);
    buffer_append_str(out, "],\"prompt_token_ids\":[");
    write_ids(out, PROMPT, false);
    buffer_append_str(out, "],\"logprobs\":{\"text_offset\":[");
    for (size_t i = 0; i < count; i++)
        buffer_printf(out, "%s%zu", i ? "," : "", i * 13);
    buffer_append_str(out, "],\"token_logprobs\":[");
    for (size_t i = 0; i < count; i++)
        buffer_printf(out, "%s%.17g", i ? "," : "", logprob_at(i));
    buffer_append_str(out, "],\"tokens\":[");
    for (size_t i = 0; i < count; i++)
        buffer_printf(out, "%s\"token_id:%u\"", i ? "," : "", i + 1 == count ? (uint32_t)END_ID : id_at(i));
    buffer_append_str(out, "],\"top_logprobs\":[");
    for (size_t i = 0; i < count; i++)
        buffer_printf(out, "%s{\"token_id:%u\":%.17g}", i ? "," : "", id_at(i), logprob_at(i));
    buffer_append_str(out, "]}}]}");
}

static void answer_sglang(struct buffer *out, size_t count)
{
    buffer_append_str(out, "{\"text\":\"");
    write_text(out, count);
    buffer_append_str(out, "\",\"output_ids\":[");
    write_ids(out, count, true);
    buffer_printf(out,
                  "],\"meta_info\":{\"finish_reason\":{\"type\":\"stop\",\"matched\":2},"
                  "\"prompt_tokens\":%d,\"completion_tokens\":%zu,\"cached_tokens\":9,"
                  "\"weight_version\":\"v1\",\"output_token_logprobs\":[",
                  PROMPT, count);
    for (size_t i = 0; i < count; i++)
        buffer_printf(out, "%s[%.17g,%u,null]", i ? "," : "", logprob_at(i),
                      i + 1 == count ? (uint32_t)END_ID : id_at(i));
    buffer_append_str(out, "]}}");
}

/* What ids say. */
static void answer_text(struct buffer *out, size_t count)
{
    static const char *const keys[] = {"{\"prompt\":\"", "\",\"text\":\""};
    for (size_t i = 0; i < 2; i++) {
        buffer_append_str(out, keys[i]);
        write_text(out, count);
    }
    buffer_append_str(out, "\"}");
}

/* Who it is, whichever way it is asked. */
static void answer_about(struct buffer *out, size_t count)
{
    (void)count;
    buffer_append_str(out, "{\"media_marker\":\"<__media_0123456789abcdefghijklmn__>\",\"model_"
                           "path\":\"m\",\"version\":\"1\","
                           "\"data\":[{\"id\":\"m\",\"max_model_len\":1048576}],\"tokenizer_path\":"
                           "\"m\",\"random_seed\":7,"
                           "\"tokens\":[5,6,7]}");
}

static void (*const writers[])(struct buffer *out, size_t count) = {answer_llama,  answer_vllm, answer_completion,
                                                                    answer_sglang, answer_text, answer_about};

const struct route routes[ROUTES] = {
    {"llama", "/completion", &dialect_llama, false},
    {"vllm", "/inference/v1/generate", &dialect_vllm, true},
    {"vllm-completions", "/v1/completions", &dialect_vllm, false},
    {"sglang", "/generate", &dialect_sglang, false},
};
enum { TEXT_ROUTE = ROUTES, ABOUT_ROUTE, ANSWERS };

/* ---- the engine: another process --------------------------------------------------------------- */

struct peer {
    int fd;
    char head[4096]; /* of its request, to the end of its header */
    size_t head_len, body_left;
    const struct buffer *answer;
    size_t sent;
    int64_t due_ms; /* 0: no call in hand */
};

static struct peer peers[CONNECTIONS_MAX + 16];
static struct buffer answers[ANSWERS];
static int waiting[CONNECTIONS_MAX + 16]; /* fds in order of their time */
static size_t waiting_from, waiting_to;
static int latency_ms, polling;

static void make_answers(size_t count)
{
    for (size_t i = 0; i < ANSWERS; i++) {
        AUTO_BUFFER body = {0};
        writers[i](&body, count);
        buffer_printf(&answers[i],
                      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                      "Content-Length: %zu\r\n\r\n",
                      body.len);
        buffer_append(&answers[i], body.data, body.len);
    }
}

static void watch(int fd, uint32_t events, int how)
{
    struct epoll_event event = {.events = events, .data.fd = fd};
    epoll_ctl(polling, how, fd, &event);
}

static void send_more(struct peer *peer)
{
    while (peer->sent < peer->answer->len) {
        ssize_t sent = send(peer->fd, peer->answer->data + peer->sent, peer->answer->len - peer->sent,
                            MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent <= 0) {
            watch(peer->fd, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
            return;
        }
        peer->sent += (size_t)sent;
    }
    watch(peer->fd, EPOLLIN, EPOLL_CTL_MOD);
    peer->answer = NULL;
    peer->head_len = 0;
}

/* A route's is answered after a while, all others at once. */
static void take_call(struct peer *peer)
{
    static const char text[] = "POST /detokenize ";
    peer->sent = 0;
    peer->answer = &answers[strncmp(peer->head, text, strlen(text)) == 0 ? TEXT_ROUTE : ABOUT_ROUTE];
    peer->due_ms = clock_ms() + latency_ms;
    for (size_t i = 0; i < ROUTES; i++) {
        size_t len = strlen(routes[i].path);
        if (strncmp(peer->head + 5, routes[i].path, len) != 0 || peer->head[5 + len] != ' ')
            continue;
        peer->answer = &answers[i];
        waiting[waiting_to++ % (CONNECTIONS_MAX + 16)] = peer->fd;
        return;
    }
    send_more(peer);
}

static void read_more(struct peer *peer)
{
    char bytes[65536];
    ssize_t got = recv(peer->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got <= 0) {
        if (got == 0 || errno != EAGAIN)
            close(peer->fd);
        return;
    }
    size_t at = 0;
    if (peer->body_left == 0) {
        size_t room = sizeof(peer->head) - 1 - peer->head_len;
        size_t take = (size_t)got < room ? (size_t)got : room;
        memcpy(peer->head + peer->head_len, bytes, take);
        peer->head[peer->head_len + take] = '\0';
        const char *end = strstr(peer->head, "\r\n\r\n"), *len = strstr(peer->head, "Content-Length: ");
        if (!end) {
            peer->head_len += take;
            return;
        }
        at = (size_t)(end + 4 - peer->head) - peer->head_len;
        peer->head_len = (size_t)(end + 4 - peer->head);
        peer->head[peer->head_len] = '\0';
        peer->body_left = len ? strtoull(len + 16, NULL, 10) : 0;
    }
    size_t rest = (size_t)got - at;
    peer->body_left -= rest < peer->body_left ? rest : peer->body_left;
    if (peer->body_left == 0)
        take_call(peer);
}

static void answer_due(void)
{
    for (; waiting_from < waiting_to; waiting_from++) {
        struct peer *peer = &peers[waiting[waiting_from % (CONNECTIONS_MAX + 16)]];
        if (peer->due_ms > clock_ms())
            return;
        send_more(peer);
    }
}

static int time_left(void)
{
    if (waiting_from == waiting_to)
        return 100;
    int64_t left = peers[waiting[waiting_from % (CONNECTIONS_MAX + 16)]].due_ms - clock_ms();
    return left > 0 ? (int)left : 0;
}

static _Noreturn void serve(int listening)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    polling = epoll_create1(0);
    watch(listening, EPOLLIN, EPOLL_CTL_ADD);
    for (;;) {
        struct epoll_event events[256];
        int count = epoll_wait(polling, events, 256, time_left());
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd != listening && fd < CONNECTIONS_MAX + 16) {
                if (events[i].events & EPOLLOUT && peers[fd].answer)
                    send_more(&peers[fd]);
                if (events[i].events & EPOLLIN)
                    read_more(&peers[fd]);
                continue;
            }
            int fresh = accept(listening, NULL, NULL);
            if (fresh < 0 || fresh >= CONNECTIONS_MAX + 16)
                continue;
            setsockopt(fresh, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
            peers[fresh] = (struct peer){.fd = fresh};
            watch(fresh, EPOLLIN, EPOLL_CTL_ADD);
        }
        answer_due();
    }
}

pid_t start_engine(size_t tokens, int answer_after_ms, char *url, size_t size)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(fd, (struct sockaddr *)&address, len) < 0 || listen(fd, 4096) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &len) < 0)
        give_up("the engine", strerror(errno));
    snprintf(url, size, "http://127.0.0.1:%d", ntohs(address.sin_port));
    latency_ms = answer_after_ms;
    make_answers(tokens);
    pid_t pid = fork();
    if (pid == 0)
        serve(fd);
    close(fd);
    return pid;
}

void stop_engine(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    for (size_t i = 0; i < ANSWERS; i++)
        buffer_finish(&answers[i]);
}
