/* Sandboxes without namespaces: what works in them, how they end, and what they are refused. */
#include "tests/workers/sandbox/landlock_world.h"
#include "tests/workers/layers/layers_world.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include "workers/layers/layer.h"
#include "workers/sandbox/command.h"
#include "workers/sandbox/requests.h"
#include "workers/sandbox/spawner_start.h"
#include "workers/tools/ipython/kernel.h"

/* ---- what works --------------------------------------------------------------------------- */

FIBER_TEST(commands_run_in_the_workspace_and_keep_their_files)
{
    struct sandbox *sandbox = open_host();
    struct fail fail;
    expect_text(sandbox, "echo kept > f; cat f", "kept\n");
    expect_text(sandbox, "cat f; test \"$PWD\" = \"$HOME\" && test \"$HOME\" = \"$SLUICE_WORKSPACE\" && echo home",
                "kept\nhome\n");
    expect_text(sandbox, "cat <(echo substituted); echo t > $TMPDIR/t && cat $TMPDIR/t", "substituted\nt\n");
    expect_status(sandbox, "mkdir -p a/b && mv a c && ln f c/b/g && ln -s f h && rm -r c", 0);
    assert_int_equal(sandbox_write_file(sandbox, "/workspace/in", "from outside", 12, 0755, &fail), 0);
    expect_text(sandbox, "cat in; stat -c %a in", "from outside755\n");
    int fd = sandbox_open_file(sandbox, "f", O_RDONLY | SANDBOX_AS_USER, 0, &fail);
    char text[8] = "";
    assert_true(fd >= 0);
    assert_int_equal(read(fd, text, 7), 5);
    close(fd);
    assert_string_equal(text, "kept\n");
    assert_int_equal(sandbox_rename(sandbox, "/workspace/f", "moved", &fail), 0);
    expect_text(sandbox, "cat moved", "kept\n");
    sandbox_close(&sandbox);
}

FIBER_TEST(a_shell_keeps_its_state_and_large_commands_run)
{
    struct sandbox *sandbox = open_host();
    struct shell *shell = open_shell(sandbox);
    AUTO_BUFFER large = {0};
    expect(shell, "x=5; mkdir d; cd d; f() { echo $x; }", 0, "");
    expect(shell, "f; basename $PWD", 0, "5\nd\n");
    struct sandbox_output output = run(shell, "sleep 100", 200, 100);
    assert_true(output.timed_out);
    free(output.text);
    expect(shell, "f; basename $PWD", 0, "5\nd\n");
    shell_close(&shell);
    for (int i = 0; i < 8000; i++)
        buffer_append_str(&large, "true\n");
    buffer_append_str(&large, "echo large");
    assert_true(buffer_append(&large, "", 1));
    expect_text(sandbox, (const char *)large.data, "large\n");
    sandbox_close(&sandbox);
}

FIBER_TEST(a_kernel_of_python_runs)
{
    struct sandbox_plan plan = host_plan();
    struct fail fail = {0};
    plan.kernels = true;
    struct sandbox *sandbox = open_sandbox(&plan);
    struct kernel *kernel = calloc(1, sizeof(*kernel));
    kernel_init(kernel, sandbox);
    int code = kernel_start(kernel, &fail);
    if (code < 0)
        fail_msg("kernel_start: %s", fail.text);
    assert_false(kernel->is_forked);
    assert_int_equal(driver_kill(&kernel->driver, &fail), 0);
    kernel_finish(kernel);
    kernel_init_jupyter(kernel, sandbox, "python3"); /* there are no sockets for one */
    assert_int_equal(kernel_start(kernel, &fail), -ENOEXEC);
    kernel_finish(kernel);
    free(kernel);
    sandbox_close(&sandbox);
}

FIBER_TEST(modes_owners_and_times_of_its_own_files_are_its_own)
{
    struct sandbox *sandbox = open_host();
    expect_text(sandbox, "echo 'echo ran' > f; chmod +x f; ./f; chmod 640 f; stat -c %a f", "ran\n640\n");
    expect_text(sandbox,
                "touch -d @1000000000 f; stat -c %Y f; touch f; test $(stat -c %Y f) -gt "
                "1000000000; echo $?",
                "1000000000\n0\n");
    expect_text(sandbox, "chown $(id -u) f && ln -s f l && touch -h -d @1000000001 l && stat -c %Y l", "1000000001\n");
    expect_text(sandbox, "mkdir d && cd d && chmod 700 ../f . && cd .. && chmod -R u+w d && stat -c %a d f",
                "700\n700\n");
    expect_text(sandbox, "perl -e 'open(F, \">\", \"g\"); chmod(0604, *F); utime(5, 6, *F)'; stat -c '%a %Y' g",
                "604 6\n");
    expect_text(sandbox, "chmod 600 missing 2>&1", "chmod: cannot access 'missing': No such file or directory\n");
    expect_status(sandbox, "for i in {1..300}; do : > $i; done; chmod 600 {1..300}", 0);
    sandbox_close(&sandbox);
}

/* ---- layers ------------------------------------------------------------------------------- */

static int set_up_layers(void **state) { return make_layers(set_up_plain(state)); }

static char *keep(struct sandbox **sandbox)
{
    struct layer layer = {0};
    struct fail fail = {0};
    char *path = NULL;
    if (layer_pack(&layers, *sandbox, &layer, &fail) < 0)
        fail_msg("layer_pack: %s", fail.text);
    assert_string_not_equal(layer.digest, "");
    if (layer_unpack(&layers, layer.digest, buffer_peek(&layer.inlined), &path, &fail) < 0)
        fail_msg("layer_unpack: %s", fail.text);
    layer_finish(&layer);
    sandbox_close(sandbox);
    return path;
}

static struct sandbox *open_on(const char *lower, const char *upper)
{
    const char *paths[] = {lower, upper};
    struct sandbox_plan plan = host_plan();
    plan.layers = paths;
    plan.layer_count = upper ? 2 : 1;
    return open_sandbox(&plan);
}

/* From here on sandboxes are of the tier. False where there can be none. */
static bool change_tier(enum tier tier)
{
    static unsigned count;
    char name[32], scratch[128], disks[128];
    struct fail fail = {0};
    struct sandbox *sandbox = NULL;
    struct sandbox_plan plan = host_plan();
    spawner_stop(&spawner);
    snprintf(name, sizeof(name), "scratch%u", ++count);
    make_dir(scratch, sizeof(scratch), name);
    snprintf(disks, sizeof(disks), "%s/disks", directory);
    spawner = spawner_start_tier(scratch, tier, disks, &fail);
    assert_true(spawner && spawner_attach(spawner, loop));
    bool can = sandbox_open(spawner, &plan, &sandbox, &fail) == 0;
    sandbox_close(&sandbox);
    return can;
}

static const char looks[] = "cd $SLUICE_WORKSPACE; find . | LC_ALL=C sort; cat new link 2>&1; stat -c %a new";

FIBER_TEST(layers_go_from_stage_to_stage)
{
    struct sandbox *sandbox = open_host();
    expect_status(sandbox, "mkdir -p a/b gone; echo one > a/b/f; echo x > gone/x; echo old > new; ln -s a/b/f link", 0);
    AUTO_FREE char *lower = keep(&sandbox);
    sandbox = open_on(lower, NULL);
    expect_status(sandbox,
                  "rm -r gone && echo two > new && chmod 700 new && mkdir locked && : > locked/f "
                  "&& chmod 0 locked",
                  0);
    AUTO_FREE char *upper = keep(&sandbox);
    sandbox = open_on(lower, upper);
    expect_status(sandbox, "chmod 700 locked", 0);
    expect_text(sandbox, looks, ".\n./a\n./a/b\n./a/b/f\n./link\n./locked\n./locked/f\n./new\ntwo\none\n700\n");
    sandbox_close(&sandbox);
}

FIBER_TEST(a_snapshot_lets_those_go_on_who_are_at_work)
{
    struct sandbox *sandbox = open_host();
    struct layer layer = {0};
    struct fail fail = {0};
    pid_t pid;
    const char *argv[] = {"/bin/bash", "-c", "sleep 100 & while [ ! -e end ]; do echo x >> f; done; kill %1", NULL};
    assert_int_equal(sandbox_write_file(sandbox, "kept", "kept\n", 5, 0644, &fail), 0);
    assert_int_equal(sandbox_start(sandbox, &(struct sandbox_exec){.argv = argv}, &pid, &fail), 0);
    if (layer_snapshot(&layers, sandbox, &layer, &fail) < 0)
        fail_msg("layer_snapshot: %s", fail.text);
    assert_string_not_equal(layer.digest, "");
    layer_finish(&layer);
    assert_int_equal(sandbox_write_file(sandbox, "end", "", 0, 0644, &fail), 0);
    assert_int_equal(sandbox_wait(sandbox, pid, &fail), 0);
    sandbox_close(&sandbox);
}

FIBER_TEST(layers_mean_the_same_in_other_tiers)
{
    static const char end[] = ".\n./a\n./link\n./new\ntwo\none\n600\n";
    struct sandbox *sandbox = open_host();
    expect_status(sandbox, "echo one > a; echo old > new; mkdir gone; : > gone/x; ln -s a link", 0);
    AUTO_FREE char *plain_lower = keep(&sandbox);
    sandbox = open_on(plain_lower, NULL);
    expect_status(sandbox, "rm -r gone; echo two > new; chmod 600 new", 0);
    AUTO_FREE char *plain_upper = keep(&sandbox);
    if (!change_tier(TIER_overlay_tmpfs)) {
        print_message("SKIPPED: no overlay for this user\n");
        return;
    }
    sandbox = open_on(plain_lower, plain_upper);
    expect_text(sandbox, looks, end);
    sandbox_close(&sandbox);
    sandbox = open_on(plain_lower, NULL);
    expect_status(sandbox, "cd /workspace; rm -r gone; echo two > new; chmod 600 new", 0);
    AUTO_FREE char *overlay_upper = keep(&sandbox);
    assert_true(change_tier(TIER_landlock));
    sandbox = open_on(plain_lower, overlay_upper);
    expect_text(sandbox, looks, end);
    sandbox_close(&sandbox);
}

FIBER_TEST(a_layer_that_leads_elsewhere_is_refused_and_a_link_in_place_of_the_workspace_leads_nowhere)
{
    char lower[128], etc[160];
    struct sandbox *sandbox = NULL;
    struct fail fail = {0};
    struct sandbox_plan plan = host_plan();
    make_dir(lower, sizeof(lower), "lower");
    snprintf(etc, sizeof(etc), "%s/etc", lower);
    assert_int_equal(mkdir(etc, 0755), 0);
    plan.layers = (const char *[]){lower};
    plan.layer_count = 1;
    assert_int_equal(sandbox_open(spawner, &plan, &sandbox, &fail), -ENOTSUP);
    assert_non_null(strstr(fail.text, "change /etc"));
    assert_int_equal(rmdir(etc), 0);
    snprintf(etc, sizeof(etc), "%s/workspace", lower);
    assert_int_equal(symlink(directory, etc), 0);
    sandbox = open_sandbox(&plan);
    expect_end(sandbox, 1, "echo x > %s/out", directory);
    expect_text(sandbox, "ls -A", "");
    sandbox_close(&sandbox);
}

/* ---- refusals ----------------------------------------------------------------------------- */

FIBER_TEST(images_networks_and_terminals_are_refused_by_name)
{
    struct sandbox *sandbox = NULL;
    struct fail fail = {0};
    int number;
    struct sandbox_plan plan = host_plan();
    plan.image = directory;
    assert_int_equal(sandbox_open(spawner, &plan, &sandbox, &fail), -ENOTSUP);
    assert_non_null(strstr(fail.text, "tier landlock have no images"));
    assert_non_null(strstr(fail.text, "sluice doctor"));
    const struct listener listener = {.name = "pip", .is_tcp = true, .port = 3128};
    plan = host_plan();
    plan.listeners = &listener;
    plan.listener_count = 1;
    assert_int_equal(sandbox_open(spawner, &plan, &sandbox, &fail), -ENOTSUP);
    assert_non_null(strstr(fail.text, "not \"pip\""));
    sandbox = open_host();
    assert_int_equal(sandbox_open_terminal(sandbox, &number, &fail), -EINVAL);
    sandbox_close(&sandbox);
}

/* ---- ends --------------------------------------------------------------------------------- */

FIBER_TEST(nothing_outlives_a_sandbox_that_is_closed)
{
    char mark[64];
    snprintf(mark, sizeof(mark), "closed-%d", getpid());
    struct sandbox *sandbox = start_tenacious(mark);
    sandbox_close(&sandbox);
    wait_for_marked(mark, 0);
}

FIBER_TEST(nothing_outlives_a_command)
{
    struct fail fail = {0};
    char mark[64];
    snprintf(mark, sizeof(mark), "command-%d", getpid());
    struct sandbox *sandbox = start_tenacious(mark);
    assert_int_equal(sandbox_kill_all(sandbox, 0, &fail), 0);
    assert_int_equal(count_marked(mark), 0);
    expect_text(sandbox, "echo lives", "lives\n");
    sandbox_close(&sandbox);
}

FIBER_TEST(nothing_outlives_a_spawner_that_is_killed)
{
    char mark[64];
    snprintf(mark, sizeof(mark), "spawner-%d", getpid());
    struct sandbox *sandbox = start_tenacious(mark);
    kill(spawner_pid(spawner), SIGKILL);
    wait_for_marked(mark, 0);
    sandbox_close(&sandbox);
}

/* As by the kernel when memory runs out. */
FIBER_TEST(nothing_outlives_a_first_process_that_is_killed)
{
    char mark[64], text[512];
    snprintf(mark, sizeof(mark), "first-%d", getpid());
    struct sandbox *sandbox = start_tenacious(mark);
    char path[64];
    pid_t first = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", spawner_pid(spawner), spawner_pid(spawner));
    FILE *children = fopen(path, "r");
    assert_non_null(children);
    for (pid_t pid; fscanf(children, "%d", &pid) == 1;) {
        snprintf(path, sizeof(path), "/proc/%d/comm", pid);
        FILE *comm = fopen(path, "r");
        if (comm && fgets(text, sizeof(text), comm) && strcmp(text, "sluice-init\n") == 0)
            first = pid;
        if (comm)
            fclose(comm);
    }
    fclose(children);
    assert_true(first > 0);
    kill(first, SIGKILL);
    wait_for_marked(mark, 0);
    sandbox_close(&sandbox);
}

/* ---- limits ------------------------------------------------------------------------------- */

static void expect_killed(const struct sandbox_plan *plan, const char *command, const char *limit)
{
    struct sandbox *sandbox = open_sandbox(plan);
    struct sandbox_output output = {0};
    struct fail fail = {0};
    assert_true(sandbox_command(sandbox, command, COMMAND_MS, 4096, &output, &fail) < 0);
    assert_non_null(sandbox_breach(sandbox));
    assert_string_equal(sandbox_breach(sandbox), limit);
    free(output.text);
    sandbox_close(&sandbox);
}

FIBER_TEST(memory_processes_and_disk_are_watched)
{
    struct sandbox_plan plan = host_plan();
    plan.memory_mib = 64;
    expect_killed(&plan, "perl -e '$x = \"x\" x (200 << 20); sleep 100'", "memory");
    plan = host_plan();
    plan.processes = 8;
    expect_killed(&plan, "for i in {1..60}; do sleep 100 & done; wait", "processes");
    plan = host_plan();
    plan.disk_mib = 8;
    expect_killed(&plan, "for i in 1 2 3; do head -c 6M /dev/zero > $TMPDIR/$i; done; sleep 100", "disk");
}

FIBER_TEST(layers_are_not_counted_and_locked_directories_are)
{
    struct sandbox *sandbox = open_host();
    expect_status(sandbox, "head -c 20M /dev/urandom > large", 0);
    AUTO_FREE char *lower = keep(&sandbox);
    struct sandbox_plan plan = host_plan();
    plan.layers = (const char *[]){lower};
    plan.layer_count = 1;
    plan.disk_mib = 8;
    sandbox = open_sandbox(&plan);
    expect_text(sandbox, "head -c 4M /dev/zero > small; mkdir d; chmod 0 d; sleep 1; stat -c %a d", "0\n");
    sandbox_close(&sandbox);
    expect_killed(&plan,
                  "mkdir shut; for i in 1 2 3; do head -c 4M /dev/zero > shut/$i; done; chmod 0 "
                  "shut; sleep 100",
                  "disk");
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        PLAIN_TEST(commands_run_in_the_workspace_and_keep_their_files),
        PLAIN_TEST(a_shell_keeps_its_state_and_large_commands_run),
        PLAIN_TEST(a_kernel_of_python_runs),
        PLAIN_TEST(modes_owners_and_times_of_its_own_files_are_its_own),
        cmocka_unit_test_setup_teardown(layers_go_from_stage_to_stage, set_up_layers, tear_down_plain),
        cmocka_unit_test_setup_teardown(a_snapshot_lets_those_go_on_who_are_at_work, set_up_layers, tear_down_plain),
        cmocka_unit_test_setup_teardown(layers_mean_the_same_in_other_tiers, set_up_layers, tear_down_plain),
        PLAIN_TEST(a_layer_that_leads_elsewhere_is_refused_and_a_link_in_place_of_the_workspace_leads_nowhere),
        PLAIN_TEST(images_networks_and_terminals_are_refused_by_name),
        PLAIN_TEST(nothing_outlives_a_sandbox_that_is_closed),
        PLAIN_TEST(nothing_outlives_a_command),
        PLAIN_TEST(nothing_outlives_a_spawner_that_is_killed),
        PLAIN_TEST(nothing_outlives_a_first_process_that_is_killed),
        PLAIN_TEST(memory_processes_and_disk_are_watched),
        cmocka_unit_test_setup_teardown(layers_are_not_counted_and_locked_directories_are, set_up_layers,
                                        tear_down_plain),
    };
    return cmocka_run_group_tests_name("landlock", tests, NULL, NULL);
}

/* As in containers, whose filters cannot look into its arguments. */
static bool forbid_clone3(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone3, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(code) / sizeof(*code), code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

static int run_without_clone3(void)
{
    const struct CMUnitTest tests[] = {PLAIN_TEST(commands_run_in_the_workspace_and_keep_their_files)};
    int status = 0;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        exit(!forbid_clone3() || cmocka_run_group_tests_name("landlock_without_clone3", tests, NULL, NULL));
    waitpid(pid, &status, 0);
    return status != 0;
}

int main(void)
{
    if (landlock_abi() < LANDLOCK_ABI_NEEDED) {
        printf("SKIPPED: the kernel has no Landlock of ABI %d\n", LANDLOCK_ABI_NEEDED);
        return SKIPPED;
    }
    return run_as_everyone(group) | run_without_clone3();
}
