/* The edit tool: what it shows, what it changes and leaves, and what it refuses in which words. */
#include "tests/workers/tools/tool_world.h"

#include "workers/sandbox/command.h"
#include "workers/tools/edit/edit_text.h"
#include "workers/tools/edit/edit_undo.h"
#include "workers/tools/toolbox.h"

#define VIEW(path) "{'command': 'view', 'path': '" path "'}"
#define RANGE(path, range) "{'command': 'view', 'path': '" path "', 'view_range': " range "}"
#define CREATE(path, text) "{'command': 'create', 'path': '" path "', 'file_text': '" text "'}"
#define REPLACE(path, old, new)                                                                                        \
    "{'command': 'str_replace', 'path': '" path "', 'old_str': '" old "', 'new_str': '" new "'}"
#define INSERT(path, line, text)                                                                                       \
    "{'command': 'insert', 'path': '" path "', 'insert_line': " line ", 'insert_text': '" text "'"                     \
    "}"
#define UNDO(path) "{'command': 'undo_edit', 'path': '" path "'}"

static struct toolbox open_edit(void)
{
    static const char *const names[] = {"edit", NULL};
    struct sandbox_plan plan = host_plan();
    return open_tools(&plan, names);
}

/* ---- text ------------------------------------------------------------------------------- */

static void lines_are_counted_and_found(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t lines, second;
    } rows[] = {{"", 0, 0}, {"a", 1, 1}, {"a\n", 1, 2}, {"a\nb", 2, 2}, {"a\nb\n", 2, 2}, {"\n\n", 2, 1}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(edit_count_lines(slice_from_str(rows[i].text)), rows[i].lines);
        assert_int_equal(edit_line_start(slice_from_str(rows[i].text), 2), rows[i].second);
    }
    assert_int_equal(edit_line_at(slice_from_str("a\nb\nc"), 0), 1);
    assert_int_equal(edit_line_at(slice_from_str("a\nb\nc"), 2), 2);
    assert_int_equal(edit_line_at(slice_from_str("a\nb\nc"), 5), 3);
    assert_true(slice_is(edit_line(slice_from_str("a\r\nbc\r\n"), 2), "bc"));
}

static void matches_are_counted_with_their_lines_and_overlaps(void **state)
{
    (void)state;
    struct edit_matches matches;
    edit_find(slice_from_str("x\nab\nab ab\n"), slice_from_str("ab"), &matches);
    assert_int_equal(matches.count, 3);
    assert_int_equal(matches.first, 2);
    assert_int_equal(matches.lines[0], 2);
    assert_int_equal(matches.lines[1], 3);
    assert_int_equal(matches.lines[2], 3);
    edit_find(slice_from_str("aaa"), slice_from_str("aa"), &matches);
    assert_int_equal(matches.count, 2);
    char many[1000];
    memset(many, 'a', sizeof(many));
    edit_find(slice_of(many, sizeof(many)), slice_from_str("a"), &matches);
    assert_int_equal(matches.count, EDIT_MATCHES_MAX);
}

static void the_nearest_line_is_the_one_most_alike(void **state)
{
    (void)state;
    struct slice text = slice_from_str("int main(void)\n{\n    return add(1, 2);\n}\n");
    size_t line = 0;
    assert_true(edit_find_nearest(text, slice_from_str("\n  return add(1, 3);"), &line));
    assert_int_equal(line, 3);
    assert_true(edit_find_nearest(text, slice_from_str("int  main(void)"), &line));
    assert_int_equal(line, 1);
    assert_false(edit_find_nearest(text, slice_from_str("class Something:"), &line));
    assert_false(edit_find_nearest(text, slice_from_str(" \n"), &line));
    assert_false(edit_find_nearest(slice_from_str(""), slice_from_str("x"), &line));
}

static void the_oldest_undo_is_forgotten_first(void **state)
{
    (void)state;
    struct undo undo = {0};
    static uint8_t large[UNDO_BYTES_MAX];
    for (size_t i = 0; i < UNDO_STEPS_MAX + 1; i++) {
        char path[16];
        snprintf(path, sizeof(path), "%zu", i);
        assert_true(undo_push(&undo, path, slice_from_str(path), i));
    }
    assert_null(undo_peek(&undo, "0"));
    assert_non_null(undo_peek(&undo, "1"));
    assert_true(undo_push(&undo, "big", slice_of(large, sizeof(large)), 7));
    assert_int_equal(undo.count, 1);
    assert_true(undo_push(&undo, "small", slice_of("", 0), 8));
    assert_true(undo_push(&undo, "small", (struct slice){0}, 9));
    assert_null(undo_peek(&undo, "small")->before);
    undo_drop(&undo, undo_peek(&undo, "small"));
    assert_non_null(undo_peek(&undo, "small")->before);
    undo_finish(&undo);
    assert_int_equal(undo.bytes, 0);
}

/* ---- view ------------------------------------------------------------------------------- */

FIBER_TEST(a_file_is_shown_with_numbers_whole_or_in_part)
{
    struct toolbox box = open_edit();
    expect_status(box.sandbox,
                  "printf 'one\\ntwo\\n\\nfour' > f; : > empty; printf 'a\\r\\nb\\r\\n' > dos; "
                  "printf 'a\\r\\nb\\n' > mixed; printf '\\377x\\n' > bytes",
                  0);
    expect_call(&box, "edit", VIEW("/workspace/f"), false,
                "     1\tone\n     2\ttwo\n     3\t\n     4\tfour\n[no newline at the end of the file]\n");
    expect_words(&box, "edit", RANGE("f", "[2, 3]"), false, "     2\ttwo\n     3\t\n");
    expect_words(&box, "edit", RANGE("f", "[4, -1]"), false, "     4\tfour\n");
    expect_words(&box, "edit", RANGE("f", "[3, 99]"), false, "     3\t\n     4\tfour\n");
    expect_call(&box, "edit", RANGE("f", "[5, -1]"), true, "f has 4 lines: view_range cannot begin at 5.");
    expect_call(&box, "edit", RANGE("f", "[0, 1]"), true, "f has 4 lines: view_range cannot begin at 0.");
    expect_call(&box, "edit", RANGE("f", "[3, 2]"), true,
                "view_range ends at 2, before it begins; -1 is the last line.");
    expect_call(&box, "edit", RANGE("f", "[3]"), true,
                "edit: the argument view_range is 1 elements; the minimum is 2.");
    expect_call(&box, "edit", VIEW("empty"), false, "[the file is empty]\n");
    expect_call(&box, "edit", VIEW("dos"), false,
                "     1\ta\n     2\tb\n[the lines end with CR LF, which edits keep]\n");
    expect_call(&box, "edit", VIEW("mixed"), false, "     1\ta\r\n     2\tb\n");
    expect_call(&box, "edit", VIEW("bytes"), false, "     1\t\xffx\n[some bytes are not UTF-8]\n");
    close_tools(&box);
}

FIBER_TEST(a_long_file_is_shown_within_the_limit_head_and_tail)
{
    struct toolbox box = open_edit();
    expect_status(box.sandbox, "seq 1 100000 > f", 0);
    struct tool_result result = call(&box, "edit", VIEW("f"));
    assert_true(result.len < limits.output_bytes + 100);
    assert_memory_equal(result.text, "     1\t1\n", 9);
    assert_non_null(strstr(result.text, " bytes left out]\n"));
    assert_non_null(strstr(result.text, "100000\t100000\n"));
    assert_int_equal(result.total, 588895 + 7 * 100000);
    tool_result_finish(&result);
    expect_words(&box, "edit", RANGE("f", "[50000, 50001]"), false, " 50000\t50000\n 50001\t50001\n");
    close_tools(&box);
}

FIBER_TEST(a_directory_is_listed_two_levels_deep_without_what_is_hidden)
{
    struct toolbox box = open_edit();
    expect_status(box.sandbox,
                  "mkdir -p d/b/c/deeper d/.git d/a e; touch d/z d/.hidden d/b/f d/.git/x "
                  "d/b/c/x; ln -s z d/link; ln -s /etc d/a/etc; mkdir d/shut; chmod 0 d/shut",
                  0);
    expect_call(&box, "edit", VIEW("d"), false,
                "/workspace/d/a/\n/workspace/d/a/etc\n/workspace/d/b/\n/workspace/d/b/c/\n"
                "/workspace/d/b/f\n/workspace/d/link\n/workspace/d/shut/\n/workspace/d/z\n");
    expect_call(&box, "edit", VIEW("e"), false, "[nothing that is not hidden]\n");
    expect_call(&box, "edit", RANGE("d", "[1, 2]"), true, "d: it is a directory, and view_range is for files.");
    expect_status(box.sandbox, "mkdir many; cd many; touch $(seq 1 1200)", 0);
    expect_words(&box, "edit", VIEW("many"), false, "[there is more, which is not shown]\n");
    close_tools(&box);
}

/* ---- changes ---------------------------------------------------------------------------- */

FIBER_TEST(one_piece_of_text_is_replaced_and_shown_in_its_place)
{
    struct toolbox box = open_edit();
    expect_status(box.sandbox, "seq 1 20 > f; chmod 0750 f; ls -i f > inode", 0);
    expect_call(&box, "edit", REPLACE("f", "10\\n11", "ten\\neleven\\nmore"), false,
                "f was edited. Lines 6 to 16 are now:\n     6\t6\n     7\t7\n     8\t8\n     9\t9\n"
                "    10\tten\n    11\televen\n    12\tmore\n    13\t12\n    14\t13\n    15\t14\n"
                "    16\t15\n");
    expect_text(box.sandbox, "stat -c %a f; sed -n '9,13p' f; ls -A", "750\n9\nten\neleven\nmore\n12\nf\ninode\n");
    expect_words(&box, "edit", "{'command': 'str_replace', 'path': 'f', 'old_str': 'ten\\n'}", false,
                 "     9\t9\n    10\televen\n");
    close_tools(&box);
}

FIBER_TEST(text_that_is_there_twice_or_not_at_all_is_refused_with_help)
{
    struct toolbox box = open_edit();
    expect_status(box.sandbox, "printf 'def add(a, b):\\n    return a - b\\n\\nx = 1\\nx = 1\\n' > f; cp f g", 0);
    expect_call(&box, "edit", REPLACE("f", "x = 1", "x = 2"), true,
                "f: old_str is there 2 times, on lines 4 and 5. Nothing was changed. Take more of the "
                "text around the one you mean into old_str.");
    expect_call(&box, "edit", REPLACE("f", "  return a-b", "y"), true,
                "f: old_str is not there. Nothing was changed. The nearest is line 2:\n    return a - b");
    expect_call(&box, "edit", REPLACE("f", "class Thing:", "y"), true, "f: old_str is not there. Nothing was changed.");
    expect_call(&box, "edit", REPLACE("f", "x", "x"), true, "edit: old_str and new_str are the same.");
    expect_call(&box, "edit", REPLACE("f", "", "x"), true, "edit: str_replace needs old_str, and it cannot be empty.");
    expect_status(box.sandbox, "cmp f g", 0);
    close_tools(&box);
}

FIBER_TEST(lines_are_inserted_whole)
{
    struct toolbox box = open_edit();
    expect_status(box.sandbox, "printf 'a\\nb\\n' > f; printf 'a\\nb' > open; : > empty", 0);
    expect_words(&box, "edit", INSERT("f", "0", "top"), false, "     1\ttop\n     2\ta\n");
    expect_words(&box, "edit", INSERT("f", "3", "end\\n"), false, "     3\tb\n     4\tend\n");
    expect_words(&box, "edit", INSERT("open", "2", "c"), false, "     2\tb\n     3\tc\n");
    expect_words(&box, "edit", INSERT("empty", "0", "x\\ny"), false, "     1\tx\n     2\ty\n");
    expect_words(&box, "edit", "{'command': 'insert', 'path': 'empty', 'insert_line': 1, 'new_str': 'between'}", false,
                 "     2\tbetween\n");
    expect_call(&box, "edit", INSERT("f", "5", "x"), true, "f has 4 lines: insert_line is 0 to 4, not 5.");
    expect_call(&box, "edit", "{'command': 'insert', 'path': 'f', 'insert_line': 1}", true,
                "edit: insert needs insert_line and insert_text.");
    expect_text(box.sandbox, "cat f; echo -; cat open; echo -; cat empty",
                "top\na\nb\nend\n-\na\nb\nc-\nx\nbetween\ny\n");
    close_tools(&box);
}

FIBER_TEST(files_are_created_with_their_parents_and_overwritten_with_a_word)
{
    struct toolbox box = open_edit();
    expect_call(&box, "edit", CREATE("/workspace/new/deep/f.py", "one\\ntwo\\n"), false,
                "/workspace/new/deep/f.py was created: 2 lines.");
    expect_text(box.sandbox, "cd new/deep; stat -c %a f.py; cat f.py; chmod 755 f.py", "644\none\ntwo\n");
    expect_call(&box, "edit", CREATE("new/deep/f.py", "x"), false, "new/deep/f.py was overwritten: 1 lines.");
    expect_text(box.sandbox, "cd new/deep; stat -c %a f.py; cat f.py; ls -A", "755\nxf.py\n");
    expect_call(&box, "edit", "{'command': 'create', 'path': 'f'}", true, "edit: create needs file_text.");
    expect_call(&box, "edit", CREATE("new/deep/f.py/g", "x"), true, "/workspace/new/deep/f.py/g: Not a directory.");
    close_tools(&box);
}

FIBER_TEST(line_ends_and_odd_bytes_are_kept)
{
    struct toolbox box = open_edit();
    expect_status(box.sandbox, "printf 'a\\r\\nb\\r\\nc' > dos; printf 'a\\r\\nb\\n\\377c\\n' > mixed", 0);
    expect_words(&box, "edit", REPLACE("dos", "a\\nb", "x\\ny\\nz"), false, "     2\ty\n");
    expect_words(&box, "edit", INSERT("dos", "1", "i"), false, "     2\ti\n");
    expect_words(&box, "edit", REPLACE("mixed", "b", "B"), false, "B");
    expect_text(box.sandbox, "od -An -c -w99 dos mixed | tr -s ' '",
                " x \\r \\n i \\r \\n y \\r \\n z \\r \\n c a \\r \\n B \\n 377 c \\n\n");
    close_tools(&box);
}

FIBER_TEST(an_edit_goes_through_links_and_keeps_them)
{
    struct toolbox box = open_edit();
    expect_status(box.sandbox,
                  "mkdir d; echo one > d/f; ln -s ../workspace/d/f /workspace/l; ln -s l ll; "
                  "echo two > h; ln h h2; ln -s nowhere dangling; ln -s loop loop",
                  0);
    expect_words(&box, "edit", REPLACE("ll", "one", "uno"), false, "     1\tuno\n");
    expect_words(&box, "edit", REPLACE("h2", "two", "due"), false, "     1\tdue\n");
    expect_text(box.sandbox, "cat d/f h; readlink l ll; stat -c %h h; ls -A . d | tr '\\n' ' '",
                "uno\ndue\n../workspace/d/f\nl\n2\n.: d dangling h h2 l ll loop  d: f ");
    expect_call(&box, "edit", REPLACE("loop", "a", "b"), true, "/workspace/loop: Too many levels of symbolic links.");
    expect_call(&box, "edit", VIEW("dangling"), true, "dangling: there is no such file.");
    close_tools(&box);
}

static unsigned refused_attributes;

/* Any file system may: where it says no, the file is to stay the one it is. */
int __real_fsetxattr(int fd, const char *name, const void *value, size_t size, int flags);
int __wrap_fsetxattr(int fd, const char *name, const void *value, size_t size, int flags);
int __wrap_fsetxattr(int fd, const char *name, const void *value, size_t size, int flags)
{
    if (strcmp(name, "user.refused") != 0)
        return __real_fsetxattr(fd, name, value, size, flags);
    refused_attributes++;
    errno = ENOSPC;
    return -1;
}

FIBER_TEST(an_edited_file_keeps_its_mode_and_attributes)
{
    static const char python[] = "python3 -c 'import os\n"
                                 "for name in (\"f\", \"stubborn\"):\n"
                                 "    print(*((n, os.getxattr(name, n)) for n in sorted(os.listxattr(name))))'";
    struct toolbox box = open_edit();
    char *text;
    refused_attributes = 0;
    expect_status(box.sandbox,
                  "echo one > f; echo one > stubborn; chmod 751 f stubborn; python3 -c 'import os\n"
                  "os.setxattr(\"f\", \"user.note\", b\"kept\\0\\xff\")\n"
                  "os.setxattr(\"f\", \"user.empty\", b\"\")\n"
                  "os.setxattr(\"stubborn\", \"user.refused\", b\"kept\")'; ls -i > /tmp/before",
                  0);
    expect_words(&box, "edit", REPLACE("f", "one", "two"), false, "two");
    expect_words(&box, "edit", REPLACE("stubborn", "one", "two"), false, "two");
    assert_int_equal(refused_attributes, 1);
    expect_text(box.sandbox, "cat f stubborn; stat -c %a f stubborn; ls -A", "two\ntwo\n751\n751\nf\nstubborn\n");
    assert_int_equal(run_text(box.sandbox, python, &text), 0);
    assert_string_equal(text, "('user.empty', b'') ('user.note', b'kept\\x00\\xff')\n('user.refused', b'kept')\n");
    free(text);
    /* The one was replaced at once, the other written in place. */
    expect_text(box.sandbox,
                "ls -i | diff - /tmp/before | grep -c '^<'; ls -i | diff - /tmp/before | grep -o "
                "'[a-z]*$' | sort -u",
                "1\nf\n");
    close_tools(&box);
}

FIBER_TEST(the_last_edits_of_a_file_are_taken_back_one_by_one)
{
    struct toolbox box = open_edit();
    expect_call(&box, "edit", UNDO("f"), true, "f: there is no edit to undo.");
    expect_words(&box, "edit", CREATE("f", "one\\n"), false, "created");
    expect_words(&box, "edit", REPLACE("f", "one", "two"), false, "two");
    expect_words(&box, "edit", CREATE("g", "g\\n"), false, "created");
    expect_words(&box, "edit", INSERT("f", "1", "three"), false, "three");
    expect_call(&box, "edit", UNDO("f"), false, "f is as it was before its last edit.");
    expect_text(box.sandbox, "cat f", "two\n");
    expect_words(&box, "edit", UNDO("/workspace/../workspace/f"), false, "as it was");
    expect_text(box.sandbox, "cat f g", "one\ng\n");
    expect_call(&box, "edit", UNDO("f"), false, "f is gone again, as before it was created.");
    expect_status(box.sandbox, "test ! -e f", 0);
    expect_words(&box, "edit", REPLACE("g", "g", "h"), false, "h");
    expect_status(box.sandbox, "echo other >> g", 0);
    expect_call(&box, "edit", UNDO("g"), true,
                "g: something else has changed it since its last edit, so that was not undone.");
    expect_text(box.sandbox, "cat g", "h\nother\n");
    close_tools(&box);
}

/* ---- what cannot be edited --------------------------------------------------------------- */

FIBER_TEST(what_is_no_text_file_is_refused_by_what_it_is)
{
    struct toolbox box = open_edit();
    expect_status(box.sandbox, "mkfifo p; printf 'a\\0b' > bin; truncate -s 5M huge; mkdir d", 0);
    static const struct {
        const char *path, *words;
    } rows[] = {
        {"p", "/workspace/p: neither a file nor a directory."},
        {"/dev/null", "/dev/null: neither a file nor a directory."},
        {"/dev/tty", "/dev/tty: "},
        {"/proc/self/status", "/proc/self/status: "},
        {"/proc/version", "/proc/version: "},
        {"bin", "bin: it is a binary file of 3 bytes."},
        {"huge", "/workspace/huge: more than the 4194304 bytes that can be edited."},
        {"nothing", "nothing: there is no such file."},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char view[256], replace[256];
        snprintf(view, sizeof(view), VIEW("%s"), rows[i].path);
        snprintf(replace, sizeof(replace), REPLACE("%s", "a", "b"), rows[i].path);
        expect_words(&box, "edit", view, true, rows[i].words);
        struct tool_result result = call(&box, "edit", replace);
        assert_true(result.is_error);
        assert_memory_equal(result.text, rows[i].path[0] == '/' ? rows[i].path : result.text, 4);
        tool_result_finish(&result);
    }
    expect_call(&box, "edit", REPLACE("d", "a", "b"), true, "/workspace/d: Is a directory.");
    expect_words(&box, "edit", CREATE("/dev/null", "x"), true, "/dev/null: ");
    expect_words(&box, "edit", CREATE("/proc/x", "x"), true, "/proc/x: ");
    expect_words(&box, "edit", CREATE("d", "x"), true, "/workspace/d: ");
    expect_status(box.sandbox, "test -p p && test -d d", 0);
    close_tools(&box);
}

FIBER_TEST(what_a_command_may_not_write_an_edit_may_not_either)
{
    struct toolbox box = open_edit();
    expect_status(box.sandbox,
                  "echo a > ro; chmod 444 ro; echo a > none; chmod 0 none; mkdir shut; echo a > "
                  "shut/f; echo a > shut/ro; chmod 444 shut/ro; chmod 555 shut",
                  0);
    expect_call(&box, "edit", REPLACE("ro", "a", "b"), true, "/workspace/ro: Permission denied.");
    expect_call(&box, "edit", VIEW("ro"), false, "     1\ta\n");
    expect_call(&box, "edit", VIEW("none"), true, "/workspace/none: Permission denied.");
    expect_call(&box, "edit", CREATE("shut/new", "x"), true, "/workspace/shut/new: Permission denied.");
    expect_call(&box, "edit", REPLACE("shut/ro", "a", "b"), true, "/workspace/shut/ro: Permission denied.");
    expect_words(&box, "edit", REPLACE("shut/f", "a", "b"), false, "     1\tb\n");
    expect_call(&box, "edit", CREATE("/usr/bin/new", "x"), true, "/usr/bin/new: Read-only file system.");
    expect_text(box.sandbox, "cat ro shut/f shut/ro; ls -A shut", "a\nb\na\nf\nro\n");
    close_tools(&box);
}

FIBER_TEST(a_full_disk_leaves_the_file_as_it_was)
{
    static const char *const names[] = {"edit", NULL};
    struct sandbox_plan plan = host_plan();
    plan.disk_mib = 2;
    struct toolbox box = open_tools(&plan, names);
    expect_status(box.sandbox, "seq 1 5000 > f; cp f /dev/shm/g; head -c 2M /dev/zero > full; true", 0);
    expect_words(&box, "edit", REPLACE("f", "\\n2500\\n", "\\nmore\\n"), true, "No space left on device");
    expect_text(box.sandbox, "cmp f /dev/shm/g && ls -A", "f\nfull\n");
    close_tools(&box);
}

FIBER_TEST(a_sandbox_that_is_gone_is_an_error_and_no_answer)
{
    struct toolbox box = open_edit();
    struct tool_result result;
    struct fail fail = {0};
    struct sandbox_output output;
    json_t *json = json_of(VIEW("f"));
    assert_int_equal(sandbox_command(box.sandbox, "head -c 2G /dev/zero | tail", COMMAND_MS, 100, &output, &fail),
                     -EIO);
    assert_int_equal(toolbox_call(&box, "edit", json, &result, &fail), -EIO);
    json_decref(json);
    close_tools(&box);
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_counted_and_found),
        cmocka_unit_test(matches_are_counted_with_their_lines_and_overlaps),
        cmocka_unit_test(the_nearest_line_is_the_one_most_alike),
        cmocka_unit_test(the_oldest_undo_is_forgotten_first),
        TEST(a_file_is_shown_with_numbers_whole_or_in_part),
        TEST(a_long_file_is_shown_within_the_limit_head_and_tail),
        TEST(a_directory_is_listed_two_levels_deep_without_what_is_hidden),
        TEST(one_piece_of_text_is_replaced_and_shown_in_its_place),
        TEST(text_that_is_there_twice_or_not_at_all_is_refused_with_help),
        TEST(lines_are_inserted_whole),
        TEST(files_are_created_with_their_parents_and_overwritten_with_a_word),
        TEST(line_ends_and_odd_bytes_are_kept),
        TEST(an_edit_goes_through_links_and_keeps_them),
        TEST(an_edited_file_keeps_its_mode_and_attributes),
        TEST(the_last_edits_of_a_file_are_taken_back_one_by_one),
        TEST(what_is_no_text_file_is_refused_by_what_it_is),
        TEST(what_a_command_may_not_write_an_edit_may_not_either),
        TEST(a_full_disk_leaves_the_file_as_it_was),
        TEST(a_sandbox_that_is_gone_is_an_error_and_no_answer),
    };
    return cmocka_run_group_tests_name("edit", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
