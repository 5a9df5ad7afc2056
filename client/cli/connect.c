#include "client/cli/connect.h"

#include <stdarg.h>

#include "common/base/sanitize.h"
#include "schemas/messages/message.h"

enum { ANSWER_MS = 4000 }; /* a person waits */

void cli_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fflush(stdout);
    fputs("sluice: ", stderr);
    sanitize_vprint(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

int cli_usage(const struct command *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    cmdline_vwrong(&command->line, format, args);
    va_end(args);
    return EXITS_USAGE;
}

bool cli_is_name(const struct command *command, const char *what, const char *text)
{
    if (*text && name_is_valid(slice_from_str(text)))
        return true;
    cli_usage(command, "%s wants a name, without a '/', a blank or a control character, not '%s'", what, text);
    return false;
}

bool cli_is_rollout(const struct command *command, const char *text)
{
    const char *slash = strrchr(text, '/');
    const bool is_number = slash && slash > text && slash[1] && slash[1 + strspn(slash + 1, "0123456789")] == '\0';
    if (is_number && name_is_valid(slice_of(text, (size_t)(slash - text))))
        return true;
    cli_usage(command, "ROLLOUT wants a rollout's name, GROUP/NUMBER, not '%s'", text);
    return false;
}

struct sluice_client *cli_connect(const struct invocation *in)
{
    struct sluice_client *client = sluice_connect(in->broker);
    if (!client) {
        cli_say("out of memory");
        return NULL;
    }
    sluice_set_timeout(client, ANSWER_MS);
    if (in->allow_plaintext)
        sluice_allow_plaintext(client);
    if (in->key && sluice_set_key(client, in->key)) {
        cli_say("%s", sluice_error(client));
        sluice_close(&client);
    }
    return client;
}

/* Elsewhere 'sluice up' would start another broker than the one that is missed. */
int cli_failed(const struct sluice_client *client)
{
    const char *hint = "";
    if (sluice_is_silent(client))
        hint = strcmp(sluice_url(client), USUAL_BROKER) == 0 ? ": start one with 'sluice up'"
                                                             : ": is it up, and is this its FRONT?";
    cli_say("%s%s", sluice_error(client), hint);
    return EXITS_FAILED;
}
