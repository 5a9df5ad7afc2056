/*
 * attack_world.h - sandboxes with the program of tests/workers/attacks/ in them, what it says
 * against a table, and the proof that the neighbour and the worker go on.
 */
#ifndef SLUICE_TESTS_WORKERS_ATTACKS_ATTACK_WORLD_H
#define SLUICE_TESTS_WORKERS_ATTACKS_ATTACK_WORLD_H

#include "tests/workers/sandbox/sandbox_fixture.h"

#include "common/base/cleanup.h"
#include "workers/sandbox/requests.h"

static const char attack_path[] = "/tmp/attack";

static inline void give_attack(struct sandbox *sandbox)
{
    char path[4096];
    struct fail fail = {0};
    AUTO_BUFFER program = {0};
    snprintf(path, sizeof(path), "%s/tests/workers_attack", getenv("SLUICE_BINARY_DIR"));
    AUTO_FCLOSE FILE *file = fopen(path, "r");
    assert_non_null(file);
    uint8_t *room = buffer_reserve(&program, 4 << 20);
    assert_non_null(room);
    program.len = fread(room, 1, 4 << 20, file);
    assert_in_range(program.len, 1000, (4 << 20) - 1);
    if (sandbox_write_file(sandbox, attack_path, program.data, program.len, 0755, &fail) < 0)
        fail_msg("%s", fail.text);
}

static inline struct sandbox *open_attacked(const struct sandbox_plan *plan)
{
    struct sandbox *sandbox = open_sandbox(plan);
    give_attack(sandbox);
    return sandbox;
}

/* Who those inside are. */
static inline unsigned inside_uid(void) { return fixture_tier == TIER_apptainer ? geteuid() : 1000; }

/* As the host knows the first process of the only sandbox. */
static inline pid_t find_first_process(void)
{
    const pid_t spawner_at = find_child(getpid(), "sluice-spawner");
    return find_child(fixture_tier == TIER_apptainer ? find_child(spawner_at, "starter") : spawner_at, "sluice-init");
}

struct attempt {
    const char *name;
    const char *expected; /* one result, or several with '|' between where kernels differ */
    const char *for_root; /* where root runs the worker, if that differs */
};

static inline bool is_expected(const struct attempt *row, const char *result)
{
    const char *expected = geteuid() == 0 && row->for_root ? row->for_root : row->expected;
    size_t len = strlen(result);
    for (const char *at = expected; at; at = strchr(at, '|')) {
        at += *at == '|';
        if (strncmp(at, result, len) == 0 && (at[len] == '|' || at[len] == '\0'))
            return true;
    }
    return false;
}

/* Every line is "NAME RESULT", in the table's order, and there is one for each row. */
static inline void expect_attempts(struct sandbox *sandbox, const char *words, const struct attempt *rows, size_t count)
{
    char command[512], *text, *rest;
    snprintf(command, sizeof(command), "%s %s", attack_path, words);
    int status = run_text(sandbox, command, &text);
    size_t seen = 0, wrong = 0;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest), seen++) {
        char *result = strrchr(line, ' ');
        assert_non_null(result);
        *result++ = '\0';
        if (seen >= count || strcmp(line, rows[seen].name) != 0 || !is_expected(&rows[seen], result)) {
            print_message("%s: %s, expected of %s: %s\n", line, result, seen < count ? rows[seen].name : "nobody",
                          seen < count ? rows[seen].expected : "nothing");
            wrong++;
        }
    }
    free(text);
    assert_int_equal(wrong, 0);
    assert_int_equal(seen, count);
    assert_int_equal(status, 0);
}

/* pid 1 does its work: starts, reaps, opens files, kills. */
static inline void expect_works(struct sandbox *sandbox)
{
    struct fail fail = {0};
    assert_true(sandbox_is_alive(sandbox));
    assert_null(sandbox_breach(sandbox));
    expect_text(sandbox, "echo well > /tmp/is-well; cat /tmp/is-well", "well\n");
    AUTO_CLOSE int fd = sandbox_open_file(sandbox, "/tmp/is-well", O_RDONLY, 0, &fail);
    assert_true(fd >= 0);
    assert_int_equal(sandbox_kill_all(sandbox, 0, &fail), 0);
}

/* A sandbox beside the attacked one, with something of its own in it. */
static inline struct sandbox *open_neighbour(void)
{
    struct sandbox *neighbour = open_host();
    expect_status(neighbour, "echo mine > /tmp/mine", 0);
    return neighbour;
}

static inline void expect_unharmed(struct sandbox **neighbour)
{
    expect_text(*neighbour, "cat /tmp/mine; ls /tmp", "mine\nmine\n");
    expect_works(*neighbour);
    sandbox_close(neighbour);
}

#endif
