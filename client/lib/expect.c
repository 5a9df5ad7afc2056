/* expect.c - whose tokens a trainer learns from: it says so once, and others are not given out. */
#include "client/lib/expect.h"

#include <errno.h>
#include <string.h>

#include "client/lib/client.h"

static int expect(struct sluice_client *client, const char *what, const char *digest, char into[80])
{
    if (digest && (!*digest || strlen(digest) >= 80))
        return client_fail(client, -EINVAL, "a %s's digest has 1 to 79 characters", what);
    strcpy(into, digest ? digest : "");
    return 0;
}

int sluice_expect(struct sluice_client *client, const char *template_digest, const char *tokenizer_digest)
{
    int failed = expect(client, "template", template_digest, client->expected_template);
    return failed ? failed : expect(client, "tokenizer", tokenizer_digest, client->expected_tokenizer);
}

static int compare(struct sluice_client *client, const struct sluice_trajectory *given, size_t trace, const char *what,
                   const char *wanted, const char *found)
{
    if (!*wanted || strcmp(wanted, found) == 0)
        return 0;
    return client_fail(client, -EILSEQ,
                       "trace %zu of %s (number %llu of stream %s) has the %s %s, where %s is expected", trace,
                       given->rollout, (unsigned long long)given->seq, given->stream, what,
                       *found ? found : "of an engine that did not tell it", wanted);
}

int client_check_expected(struct sluice_client *client, const struct sluice_trajectory *given)
{
    int failed = 0;
    for (size_t i = 0; i < given->trace_count && !failed; i++) {
        const struct sluice_trace *trace = &given->traces[i];
        failed = compare(client, given, i, "template", client->expected_template, trace->template_digest);
        if (!failed)
            failed = compare(client, given, i, "tokenizer", client->expected_tokenizer, trace->tokenizer_digest);
    }
    return failed;
}
