/* Patches as git writes them: whose files they are, and what of an agent's is kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/cleanup.h"
#include "workers/evaluators/swe/eval_script.h"

#define CHANGED(path)                                                                                                  \
    "diff --git a/" path " b/" path "\nindex 1..2 100644\n--- a/" path "\n+++ b/" path "\n@@ -1 +1 @@\n-a\n+b\n"
#define MADE(path)                                                                                                     \
    "diff --git a/" path " b/" path "\nnew file mode 100644\n--- /dev/null\n+++ b/" path "\n@@ -0,0 +1 @@\n+b\n"

static void assert_paths(const struct paths *paths, const char *wanted)
{
    AUTO_BUFFER out = {0};
    for (size_t i = 0; i < paths->count; i++)
        buffer_printf(&out, "%s%s", i ? "|" : "", paths->each[i]);
    buffer_append(&out, "", 1);
    assert_string_equal((char *)out.data, wanted);
}

static void a_patch_names_its_files(void **state)
{
    AUTO_PATHS paths = {0};
    (void)state;
    patch_list_files(
        slice_from_str(CHANGED("a.py") MADE("t/b c.py") CHANGED(
            "a.py") "diff --git a/old.py b/new.py\nsimilarity index 90%\nrename from old.py\nrename to new.py\n"
                    "diff --git \"a/\\303\\244.py\" \"b/\\303\\244.py\"\ndeleted file mode 100644\n"
                    "--- a/gone.py\n+++ /dev/null\n@@ -1 +1 @@\n--- a/no.py\n+++ b/no.py\n"),
        &paths);
    assert_paths(&paths, "a.py|t/b c.py|old.py|new.py|\xc3\xa4.py|gone.py");
}

static void files_of_tests_and_protected_ones_are_left_out(void **state)
{
    struct patch_kept kept = {.patch = {0}};
    const struct task_swe swe = {.repository = NULL};
    AUTO_PATHS tests = {0};
    (void)state;
    paths_add(&tests, slice_from_str("t/test_a.py"));
    const char *patch = CHANGED("a.py") CHANGED("t/test_a.py") MADE("deep/er/conftest.py") MADE("x.pth") MADE("new.py");
    assert_true(patch_keep(slice_from_str(patch), &swe, &tests, &kept));
    assert_paths(&kept.files, "a.py|new.py");
    assert_paths(&kept.made, "new.py");
    assert_paths(&kept.tests, "t/test_a.py");
    assert_paths(&kept.is_protected, "deep/er/conftest.py|x.pth");
    assert_true(slice_is(buffer_peek(&kept.patch), CHANGED("a.py") MADE("new.py")));
    patch_kept_finish(&kept);
}

static void a_task_says_itself_what_is_protected(void **state)
{
    struct patch_kept kept = {.patch = {0}};
    const char *patterns[] = {"tools/*.sh", "secret"};
    const struct task_swe swe = {.protected = patterns, .protected_count = 2};
    const struct paths none = {.count = 0};
    (void)state;
    assert_true(patch_keep(
        slice_from_str(CHANGED("setup.cfg") CHANGED("tools/a.sh") CHANGED("tools/x/a.sh") CHANGED("b/secret")), &swe,
        &none, &kept));
    assert_paths(&kept.files, "setup.cfg|tools/x/a.sh");
    assert_paths(&kept.is_protected, "tools/a.sh|b/secret");
    patch_kept_finish(&kept);
}

static void what_is_no_patch_of_gits_is_none(void **state)
{
    static const char *const texts[] = {"x", "--- a/x\n+++ b/x\n", "diff --git a/x b/y\n", "diff --git \"a/x",
                                        "diff --git \n"};
    const struct task_swe swe = {.repository = NULL};
    const struct paths none = {.count = 0};
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct patch_kept kept = {.patch = {0}};
        assert_false(patch_keep(slice_from_str(texts[i]), &swe, &none, &kept));
        patch_kept_finish(&kept);
    }
}

static void a_scripts_own_marks_get_the_nonce(void **state)
{
    char script[] =
        "set -x\ncat <<E\n>>>>> Start Test Output\nE\n: '>>>>> Start Test Output'\nrun\n: '>>>>> End Test Output'\n";
    const struct task_swe swe = {.script = script};
    const struct paths none = {.count = 0};
    AUTO_BUFFER out = {0};
    (void)state;
    script_run(&swe, "/p", &none, NULL, "00112233445566778899aabbccddeeff", &out);
    buffer_append(&out, "", 1);
    assert_string_equal(
        (char *)out.data,
        "set -x\ncat <<E\n>>>>> Start Test Output\nE\n: '>>>>> Start Test Output 00112233445566778899aabbccddeeff'\n"
        "run\n: '>>>>> End Test Output 00112233445566778899aabbccddeeff '$?''\n\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_patch_names_its_files),
        cmocka_unit_test(files_of_tests_and_protected_ones_are_left_out),
        cmocka_unit_test(a_task_says_itself_what_is_protected),
        cmocka_unit_test(what_is_no_patch_of_gits_is_none),
        cmocka_unit_test(a_scripts_own_marks_get_the_nonce),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
