/* Dockerfiles as text, and what is worked out of them: dockerfiles.txt, and .dockerignore's patterns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buffer.h"
#include "common/base/cleanup.h"
#include "workers/dockerfile/glob.h"
#include "workers/dockerfile/stages.h"

/* ---- the images there are --------------------------------------------------------------------- */

static int find_base(void *arg, const char *name, struct image_config *ret, struct fail *fail)
{
    (void)arg;
    if (strcmp(name, "missing:1") == 0)
        return fail_set(fail, -EINVAL, "no image is known as %s", name);
    if (strcmp(name, "python:3.12") != 0)
        return 0;
    ret->workdir = strdup("/base");
    return image_config_set(ret, "PATH", "/py/bin:/bin");
}

/* ---- in words ----------------------------------------------------------------------------------- */

static void put(struct buffer *out, const char *text)
{
    for (; *text; text++)
        if (*text == '\n')
            buffer_append(out, "\\n", 2);
        else
            buffer_append(out, text, 1);
}

static void put_variables(struct buffer *out, const struct image_config *config)
{
    for (size_t i = 0; i < config->variable_count; i++)
        buffer_printf(out, "%s%s", i ? " " : "", config->variables[i]);
}

static void put_run(struct buffer *out, const struct stage_step *step)
{
    put(out, step->script ? " script " : " ");
    put(out, step->script ? step->script : "");
    for (size_t i = 0; i < step->argv_count; i++) {
        put(out, i ? "|" : "");
        put(out, step->argv[i]);
    }
    if (step->environment.variable_count == 0)
        return;
    put(out, "  {");
    put_variables(out, &step->environment);
    put(out, "}");
}

static void put_copy(struct buffer *out, const struct stage_step *step)
{
    for (size_t i = 0; i < step->source_count; i++)
        buffer_printf(out, " %s", step->sources[i]);
    buffer_printf(out, " -> %s", step->destination);
    if (step->from_stage >= 0)
        buffer_printf(out, " from stage %d", step->from_stage);
    if (step->from)
        buffer_printf(out, " from %s", step->from);
    if (step->mode)
        buffer_printf(out, " mode %o", step->mode);
    for (size_t i = 0; i < step->file_count; i++) {
        buffer_printf(out, " file %s=", step->files[i].name);
        put(out, step->files[i].content);
    }
}

static void put_stage(struct buffer *out, const struct build_stage *stage, size_t number)
{
    static const char *const kinds[] = {"RUN", "COPY", "ADD", "WORKDIR"};
    buffer_printf(out, "stage %zu %s from ", number, stage->name ? stage->name : "-");
    if (stage->base_stage >= 0)
        buffer_printf(out, "stage %d\n", stage->base_stage);
    else
        buffer_printf(out, "%s\n", stage->base);
    for (size_t i = 0; i < stage->step_count; i++) {
        const struct stage_step *step = &stage->steps[i];
        buffer_printf(out, "  %s", kinds[step->kind]);
        if (step->kind == STEP_RUN)
            put_run(out, step);
        else if (step->kind == STEP_WORKDIR)
            buffer_printf(out, " %s", step->destination);
        else
            put_copy(out, step);
        put(out, "");
        buffer_append(out, "\n", 1);
    }
    const struct image_config *left = &stage->environment;
    put(out, "  = ");
    put_variables(out, left);
    buffer_printf(out, "%sin %s as %s\n", left->variable_count ? " " : "", left->workdir ? left->workdir : "-",
                  left->user ? left->user : "-");
}

/* `given` is what stands behind the "--". */
static void work_out(struct slice text, char *given, struct buffer *out)
{
    const char *each[16];
    struct task_variables args = {.each = each};
    struct build_sources sources = {.args = &args, .find_base = find_base};
    struct dockerfile dockerfile;
    struct build_stages *stages = calloc(1, sizeof(*stages));
    struct fail fail = {0};
    for (char *word = strtok(given, " "); word; word = strtok(NULL, " "))
        if (strncmp(word, "target=", 7) == 0)
            sources.target = word + 7;
        else
            each[args.count++] = word;
    int code = dockerfile_parse(text, &dockerfile, &fail);
    if (code == 0)
        code = build_stages_make(&dockerfile, &sources, stages, &fail);
    if (code < 0)
        buffer_printf(out, "! %s\n", fail.text);
    for (size_t i = 0; i < stages->count && code == 0; i++)
        if (stages->each[i].is_needed)
            put_stage(out, &stages->each[i], i);
    buffer_append(out, "", 1);
    build_stages_finish(stages);
    dockerfile_finish(&dockerfile);
    free(stages);
}

/* ---- the table -------------------------------------------------------------------------------------- */

static char *read_table(void)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/tests/workers/dockerfile/dockerfiles.txt", getenv("SLUICE_SOURCE_DIR"));
    FILE *file = fopen(path, "re");
    char *text = calloc(1, 1 << 17);
    assert_non_null(file);
    assert_true(fread(text, 1, (1 << 17) - 1, file) > 1000);
    fclose(file);
    return text;
}

/* Begins behind its "== "; cut into its parts. */
static int check_case(char *text)
{
    AUTO_BUFFER out = {0};
    char *name = strsep(&text, "\n"), *dockerfile = text, *end = strstr(text, "\n--");
    assert_non_null(end);
    char *given = end + 3, *wanted = strchr(given, '\n') + 1;
    *strchr(given, '\n') = '\0';
    end[1] = '\0';
    size_t len = strlen(wanted);
    while (len > 1 && wanted[len - 1] == '\n' && wanted[len - 2] == '\n')
        wanted[--len] = '\0';
    work_out(slice_from_str(dockerfile), given, &out);
    if (strcmp((const char *)out.data, wanted) == 0)
        return 0;
    print_error("== %s\n-- is:\n%s-- wanted:\n%s\n", name, (const char *)out.data, wanted);
    return 1;
}

static void each_dockerfile_comes_to_what_the_table_says(void **state)
{
    (void)state;
    int failed = 0, count = 0;
    AUTO_FREE char *table = read_table();
    char *at = strstr(table, "\n== ");
    while (at) {
        char *next = strstr(at + 4, "\n== ");
        if (next)
            *next = '\0';
        failed += check_case(at + 4);
        count++;
        at = next;
        if (next)
            *next = '\n';
    }
    assert_int_equal(failed, 0);
    assert_true(count > 30);
}

/* ---- the environment alone ----------------------------------------------------------------------------- */

static int count_bases(void *arg, const char *name, struct image_config *ret, struct fail *fail)
{
    (void)name, (void)ret, (void)fail;
    ++*(int *)arg;
    return 0;
}

/* What the agent's sandbox and the evaluator's need of it, once a rollout each. */
static void for_an_environment_only_what_it_stands_on_is_looked_for(void **state)
{
    static const char text[] = "FROM a AS build\nRUN make\nFROM b AS base\nENV A=1\nFROM base\n"
                               "COPY --from=build /out /out\nCOPY --from=c /x /x\nENV B=2\n";
    struct dockerfile dockerfile;
    struct fail fail = {0};
    (void)state;
    for (int only = 0; only < 2; only++) {
        int count = 0;
        const struct build_sources sources = {.environment_only = only, .find_base = count_bases, .arg = &count};
        struct build_stages *stages = calloc(1, sizeof(*stages));
        assert_int_equal(dockerfile_parse(slice_from_str(text), &dockerfile, &fail), 0);
        assert_int_equal(build_stages_make(&dockerfile, &sources, stages, &fail), 0);
        const struct image_config *left = &stages->each[stages->target].environment;
        assert_string_equal(image_config_get(left, "A"), "1");
        assert_string_equal(image_config_get(left, "B"), "2");
        assert_int_equal(count, only ? 1 : 2);
        build_stages_finish(stages);
        dockerfile_finish(&dockerfile);
        free(stages);
    }
}

/* ---- patterns ------------------------------------------------------------------------------------------ */

static void patterns_match_as_those_of_go(void **state)
{
    static const struct {
        const char *pattern, *path;
        bool matches;
    } rows[] = {
        {"*.txt", "a.txt", true},
        {"*.txt", "d/a.txt", false},
        {"d/*", "d/a", true},
        {"d/*", "d/a/b", false},
        {"**/a", "x/y/a", true},
        {"**/a", "a", true},
        {"a/**", "a/b/c", true},
        {"**", "any/thing", true},
        {"?.c", "a.c", true},
        {"?.c", "ab.c", false},
        {"[a-c]x", "bx", true},
        {"[^a-c]x", "bx", false},
        {"[^a-c]x", "dx", true},
        {"\\*", "*", true},
        {"\\*", "a", false},
        {"a*b*c", "aXbYc", true},
        {"", "", true},
        {"*", "", true},
        {"[", "[", false},
        {"[a", "a", false},
        {"x/**/y", "x/y", true},
        {"x/**/y", "x/1/2/y", true},
        {"*a*a*a*b", "aaaaa", false},
        {"**/a", "ba", false},
        {"**/a", "x/ba", false},
        {"**/*.py", "x/y.z/a.py", true},
        {"**/x/*/y", "x/1/2/x/3/y", true},
        {"a/**/b*/**/c", "a/b1/x/b2/y/c", true},
        {"a/**/b*/**/c", "a/x/y/c", false},
        {"a**", "ab/c", true},
        {"a**c", "abc", true},
        {"a**c", "ab/c", false},
        {"*a**b", "xacab", true},
        {"[a-\\-", "b", false},
        {"[a-\\c]", "b", true},
        {"[+-\\-]x", ",x", true},
        {"[a-", "a", false},
        {"[\\", "a", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (glob_match(rows[i].pattern, rows[i].path) != rows[i].matches)
            fail_msg("%s %s %s", rows[i].pattern, rows[i].matches ? "is to match" : "matches", rows[i].path);
}

static void names_are_matched_one_by_one_without_directories(void **state)
{
    (void)state;
    assert_true(glob_match_name("**", "name") && glob_match_name("**x", "ax") && !glob_match_name("**/x", "x"));
}

/* Down from the top, as they are asked of a tree. */
static bool is_left_out(const struct ignore *ignore, const char *path)
{
    int decided = IGNORE_NOTHING;
    AUTO_FREE char *above = strdup(path);
    for (size_t i = 0; path[i]; i++)
        if (path[i] == '/') {
            above[i] = '\0';
            decided = ignore_decide(ignore, above, decided);
            above[i] = '/';
        }
    return ignore_names(ignore, ignore_decide(ignore, path, decided));
}

static void the_last_pattern_of_a_dockerignore_decides(void **state)
{
    static const char text[] = "# comment\n*.log\n!keep.log\n\n/build/\n**/__pycache__\nsecret*\n!secret.pub\n.\n";
    static const char *const held[] = {"a.log", "build", "build/x/y", "a/b/__pycache__", "secret.key"};
    static const char *const kept[] = {"keep.log", "a/a.log", "src/build", "secret.pub", "x"};
    struct ignore ignore;
    (void)state;
    assert_int_equal(ignore_parse(slice_from_str(text), &ignore), 0);
    for (size_t i = 0; i < 5; i++) {
        assert_true(is_left_out(&ignore, held[i]));
        assert_false(is_left_out(&ignore, kept[i]));
    }
    ignore_finish(&ignore);
}

static void a_byte_order_mark_is_no_part_of_the_first_pattern(void **state)
{
    struct ignore ignore;
    (void)state;
    assert_int_equal(ignore_parse(slice_from_str("\xef\xbb\xbfsecret\nlog"), &ignore), 0);
    assert_true(ignore.count == 2 && is_left_out(&ignore, "secret") && is_left_out(&ignore, "log"));
    ignore_finish(&ignore);
}

static void a_pattern_that_would_take_for_ever_ends(void **state)
{
    enum { LONG = 4000 };
    AUTO_FREE char *pattern = calloc(1, 4 * LONG + 8), *path = calloc(1, LONG + 1);
    (void)state;
    for (int i = 0; i < LONG; i++)
        strcpy(pattern + 2 * i, "*a");
    memset(path, 'a', LONG);
    assert_true(glob_match(pattern, path)); /* as many levels as it has stars, if it recurred */
    strcat(pattern, "b");
    assert_false(glob_match(pattern, path));
    for (int i = 0; i < LONG / 2; i++) {
        strcpy(pattern + 4 * i, "**/a");
        memcpy(path + 2 * i, "a/", 2);
    }
    strcat(pattern, "b");
    assert_false(glob_match(pattern, path));
}

/* ---- bounds ------------------------------------------------------------------------------------------------ */

static void expect_refused(struct slice text, const char *words)
{
    struct dockerfile dockerfile;
    struct fail fail = {0};
    assert_int_equal(dockerfile_parse(text, &dockerfile, &fail), -EINVAL);
    if (!strstr(fail.text, words))
        fail_msg("%s", fail.text);
    dockerfile_finish(&dockerfile);
}

static void what_is_too_large_is_refused(void **state)
{
    AUTO_BUFFER many = {0};
    AUTO_BUFFER words = {0};
    (void)state;
    for (int i = 0; i < 1100; i++)
        buffer_printf(&many, "RUN true\n");
    expect_refused(buffer_peek(&many), "line 1025: more than 1024 instructions");
    buffer_printf(&words, "FROM a\nCOPY");
    for (int i = 0; i < 600; i++)
        buffer_printf(&words, " a");
    expect_refused(buffer_peek(&words), "line 2: more than 512 words");
    expect_refused(slice_of("FROM a\0b", 8), "holds no NUL");
}

static void *parse_nested(void *arg)
{
    AUTO_BUFFER text = {0};
    struct dockerfile dockerfile;
    struct fail fail = {0};
    (void)arg;
    buffer_append_str(&text, "FROM a\nRUN ");
    for (int i = 0; i < 1000; i++)
        buffer_append_str(&text, "[{\"a\":");
    assert_int_equal(dockerfile_parse(buffer_peek(&text), &dockerfile, &fail), 0);
    assert_false(dockerfile.each[1].is_json);
    dockerfile_finish(&dockerfile);
    return NULL;
}

/* A fiber's is 256 KiB, and not all of it is left here. */
static void json_nested_without_end_takes_no_stack(void **state)
{
    pthread_t thread;
    pthread_attr_t attributes;
    (void)state;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, 128 * 1024), 0);
    assert_int_equal(pthread_create(&thread, &attributes, parse_nested, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_dockerfile_comes_to_what_the_table_says),
        cmocka_unit_test(for_an_environment_only_what_it_stands_on_is_looked_for),
        cmocka_unit_test(patterns_match_as_those_of_go),
        cmocka_unit_test(names_are_matched_one_by_one_without_directories),
        cmocka_unit_test(the_last_pattern_of_a_dockerignore_decides),
        cmocka_unit_test(a_byte_order_mark_is_no_part_of_the_first_pattern),
        cmocka_unit_test(a_pattern_that_would_take_for_ever_ends),
        cmocka_unit_test(what_is_too_large_is_refused),
        cmocka_unit_test(json_nested_without_end_takes_no_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
