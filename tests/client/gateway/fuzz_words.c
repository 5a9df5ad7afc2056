/*
 * Words that come from outside and are read by hand: the first byte says which. A token, the target of a request with
 * its query, an address to listen at, a rule of addresses with a URL behind it.
 */
#include "client/gateway/door/engines.h"
#include "common/base/cleanup.h"
#include "common/base/utf8.h"
#include "common/http/target.h"
#include "common/net/listen_address.h"
#include "common/net/token.h"
#include "tests/fuzz.h"

static bool is_words(const char *text) { return text[0] && utf8_is_valid(slice_from_str(text)); }

static void check_token(const char *text)
{
    struct key key, again;
    struct fail fail = {0};
    char token[TOKEN_SIZE];
    if (token_parse(text, &key, &fail) < 0) {
        must(is_words(fail.text));
        return;
    }
    must(key_name_is_valid(key.name) && strlen(text) < TOKEN_SIZE);
    must(token_format(&key, token, &fail) == 0 && strcmp(token, text) == 0);
    must(token_parse(token, &again, &fail) == 0 && memcmp(&key, &again, sizeof(key)) == 0);
}

static void check_target(const char *text, bool takes_slashes)
{
    struct target target;
    must(target_parse(text, takes_slashes, &target));
    must(target.fault ? is_words(target.fault) : target.path[0] == '/');
    must(utf8_is_valid(slice_from_str(target.path)) && !strstr(target.path, "/../"));
    for (const char *c = target.path; *c; c++)
        must((unsigned char)*c >= 0x20 && *c != 0x7f);
    for (const char *c = target.raw; *c; c++)
        must(*c > 0x20 && *c < 0x7f);
    static const char *const names[] = {"", "a", "from", "limit"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        const char *value = target_query(&target, names[i]);
        must((value != NULL) == (target_query_count(&target, names[i]) > 0));
        must(!value || utf8_is_valid(slice_from_str(value)));
    }
    target_finish(&target);
}

static void check_listen(const char *text)
{
    char host[LISTEN_HOST_MAX + 1];
    const char *port;
    if (!listen_address_split(text, host, &port))
        return;
    must(host[0] && strlen(host) <= LISTEN_HOST_MAX && !strpbrk(host, " \t\n[]/@"));
    must(strspn(port, "0123456789") == strlen(port) && atol(port) <= UINT16_MAX);
}

/* "RULE URL": a rule that is one allows or refuses, and each refusal has words. */
static void check_rule(char *text)
{
    struct fail fail = {0};
    char *blank = strchr(text, ' ');
    if (blank)
        *blank = '\0';
    const char *url = blank ? blank + 1 : "http://127.0.0.1:80/x";
    const char *const rules[] = {"loopback", text, "10.0.0.0/8", NULL};
    if (engines_rule_check(text, &fail) < 0)
        must(fail.text[0]);
    if (!address_allow(rules, url, "--callback", &fail))
        must(fail.text[0] && fail.code < 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_FREE char *text = malloc(size + 1);
    must(text);
    if (size == 0)
        return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    switch (data[0] % 5) {
    case 0: check_token(text); break;
    case 1: check_target(text, false); break;
    case 2: check_target(text, true); break;
    case 3: check_listen(text); break;
    default: check_rule(text); break;
    }
    return 0;
}
