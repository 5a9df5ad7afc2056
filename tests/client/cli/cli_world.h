/* cli_world.h - the `sluice` command, run as a program against the fake broker, in a folder of its own. */
#ifndef SLUICE_TESTS_CLIENT_CLI_CLI_WORLD_H
#define SLUICE_TESTS_CLIENT_CLI_CLI_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/buffer.h"
#include "tests/client/fake_broker.h"

struct fixture {
    struct fake_broker *broker;
    char folder[64], sluice[4096];
    struct buffer output; /* of the last command, stdout and stderr, with a NUL */
};

static inline int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    const char *build = getenv("SLUICE_BINARY_DIR");
    if (!build)
        return -1;
    snprintf(f->sluice, sizeof(f->sluice), "%s/client/sluice", build);
    strcpy(f->folder, "/tmp/sluice-cli-XXXXXX");
    if (!mkdtemp(f->folder) || chdir(f->folder) != 0)
        return -1;
    f->broker = fake_start();
    setenv("SLUICE_BROKER", fake_url(f->broker), 1);
    *state = f;
    return 0;
}

static inline int tear_down(void **state)
{
    struct fixture *f = *state;
    char command[128];
    fake_stop(&f->broker);
    snprintf(command, sizeof(command), "rm -rf '%s'", f->folder);
    int removed = chdir("/") == 0 && system(command) == 0;
    buffer_finish(&f->output);
    free(f);
    return removed ? 0 : -1;
}

/* Runs `sluice <arguments>` through the shell; returns its exit status. */
static inline int run(struct fixture *f, const char *arguments)
{
    char command[8192], chunk[4096];
    snprintf(command, sizeof(command), "'%s' %s 2>&1", f->sluice, arguments);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t got;
    buffer_clear(&f->output);
    while ((got = fread(chunk, 1, sizeof(chunk), pipe)) > 0)
        buffer_append(&f->output, chunk, got);
    buffer_append(&f->output, "", 1);
    int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static inline const char *said(const struct fixture *f) { return (const char *)f->output.data; }

static inline void expect(struct fixture *f, const char *arguments, int status, const char *words)
{
    int got = run(f, arguments);
    if (got != status || !strstr(said(f), words))
        fail_msg("sluice %s: exit status %d, not %d, or no '%s' in:\n%s", arguments, got, status, words, said(f));
}

static inline void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static inline char *read_file(const char *name)
{
    struct buffer text = {0};
    char chunk[4096];
    size_t got;
    FILE *file = fopen(name, "r");
    assert_non_null(file);
    while ((got = fread(chunk, 1, sizeof(chunk), file)) > 0)
        buffer_append(&text, chunk, got);
    fclose(file);
    return buffer_take_str(&text);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
