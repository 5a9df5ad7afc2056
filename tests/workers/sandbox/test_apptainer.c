/* The tier apptainer: its sandboxes, where apptainer is found, and where that is not. */
#include "tests/workers/sandbox/landlock_world.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/syscall.h>

#include "workers/layers/layer.h"
#include "workers/sandbox/command.h"
#include "workers/sandbox/probe/probe.h"
#include "workers/sandbox/requests.h"
#include "workers/sandbox/spawner_start.h"

/* ---- without apptainer ---------------------------------------------------------------------- */

static void run_without(void)
{
    struct sandbox *sandbox = NULL;
    struct sandbox_plan plan = host_plan();
    struct fail fail = {0};
    int code = sandbox_open(spawner, &plan, &sandbox, &fail);
    assert_true(code < 0);
    assert_non_null(strstr(fail.text, "apptainer"));
}

static void where_it_is_not_in_path_no_sandbox_is_made_and_its_name_is_said(void **state)
{
    AUTO_FREE char *path = strdup(getenv("PATH"));
    setenv("PATH", "/nonexistent", 1);
    fixture_tier = TIER_apptainer;
    assert_int_equal(set_up(state), 0);
    in_fiber(run_without);
    assert_int_equal(tear_down_plain(state), 0);
    setenv("PATH", path, 1);
}

/* ---- its sandboxes ------------------------------------------------------------------------- */

FIBER_TEST(commands_run_in_a_root_of_their_own_and_write_where_they_may)
{
    struct sandbox *sandbox = open_host();
    expect_text(sandbox, "pwd; echo kept > f; cat f; echo $HOME $SLUICE_WORKSPACE; hostname; ls -A /run /home 2>&1",
                "/workspace\nkept\n/workspace /workspace\nsandbox\nls: cannot access '/home': No such file "
                "or directory\n"
                "/run:\nsluice\n");
    expect_text(sandbox,
                "set -- /proc/[0-9]*; echo $#; cat /proc/1/comm; echo x > /tmp/t; cat /tmp/t "
                "/dev/shm/s 2>/dev/null",
                "2\nsluice-init\nx\n");
    expect_text(sandbox, "for d in / /usr /etc /run /run/sluice; do : > $d/new && echo $d; done 2>/dev/null; true", "");
    expect_text(sandbox, "grep -E '^(CapPrm|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status | tr -s '\\t' ' '",
                "CapPrm: 0000000000000000\nCapBnd: 0000000000000000\nNoNewPrivs: 1\nSeccomp: 2\n");
    sandbox_close(&sandbox);
}

/* A directory with the host's /usr in it, as small as an image can be. */
static void make_image(char *ret, size_t size)
{
    char path[2048];
    static const char *const links[] = {"bin", "lib", "lib64", "sbin"};
    make_dir(ret, size, "image");
    for (size_t i = 0; i < 4; i++) {
        char to[32];
        snprintf(path, sizeof(path), "%s/%s", ret, links[i]);
        snprintf(to, sizeof(to), "usr/%s", links[i]);
        assert_int_equal(symlink(to, path), 0);
    }
    snprintf(path, sizeof(path),
             "mkdir -p %s/usr/bin %s/usr/lib64 %s/usr/lib %s/data %s/workspace/given %s/tmp && cp "
             "/bin/bash "
             "/bin/cat /bin/ls %s/usr/bin/",
             ret, ret, ret, ret, ret, ret, ret);
    assert_int_equal(system(path), 0);
    snprintf(path, sizeof(path),
             "for f in $(ldd /bin/bash /bin/ls /bin/cat | grep -o '/[^ ]*so[^ ]*'); do mkdir -p "
             "%s$(dirname $f); cp -Lu $f %s$f; done",
             ret, ret);
    assert_int_equal(system(path), 0);
    write_host_file(ret, "data/own", "of the image\n", 0644);
    write_host_file(ret, "workspace/given/f", "given\n", 0644);
}

FIBER_TEST(an_image_is_served_read_only_with_its_own_workspace)
{
    char image[128];
    struct sandbox_plan plan = host_plan();
    make_image(image, sizeof(image));
    plan.image = image;
    struct sandbox *sandbox = open_sandbox(&plan);
    expect_text(sandbox,
                "cat /data/own given/f; echo more >> given/f; cat given/f; (: > /data/new) "
                "2>/dev/null; ls /data",
                "of the image\ngiven\ngiven\nmore\nown\n");
    sandbox_close(&sandbox);
    sandbox = open_sandbox(&plan);
    expect_text(sandbox, "cat given/f", "given\n");
    sandbox_close(&sandbox);
}

/* Apptainer itself would run the first and read the second. */
FIBER_TEST(no_script_of_an_image_runs_before_the_container_is_confined)
{
    char image[128], path[512];
    struct sandbox_plan plan = host_plan();
    make_image(image, sizeof(image));
    snprintf(path, sizeof(path), "mkdir -p %s/.singularity.d/env %s/.singularity.d/actions", image, image);
    assert_int_equal(system(path), 0);
    write_host_file(image, ".singularity.d/env/90-environment.sh", "echo ran > /workspace/ran\nexec 3>&-\n", 0755);
    write_host_file(image, ".singularity.d/actions/exec", "#!/bin/sh\necho ran > /workspace/ran\n", 0755);
    plan.image = image;
    struct sandbox *sandbox = open_sandbox(&plan);
    expect_text(sandbox, "ls", "given\n");
    sandbox_close(&sandbox);
}

FIBER_TEST(an_image_that_cannot_be_shown_is_blamed_and_one_that_is_not_there_is_the_tasks)
{
    char image[128];
    struct sandbox *sandbox = NULL;
    struct fail fail = {0};
    struct sandbox_plan plan = host_plan();
    make_image(image, sizeof(image));
    write_host_file(image, "a,b", "", 0644);
    plan.image = image;
    assert_int_equal(sandbox_open(spawner, &plan, &sandbox, &fail), -ENOMEDIUM);
    assert_non_null(strstr(fail.text, "a,b"));
    plan.image = "/does/not/exist";
    assert_int_equal(sandbox_open(spawner, &plan, &sandbox, &fail), -EINVAL);
}

FIBER_TEST(a_layer_that_changes_more_than_the_workspace_is_refused_by_the_tiers_name)
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
    assert_non_null(strstr(fail.text, "change /etc: sandboxes of the tier apptainer have"));
}

FIBER_TEST(layers_go_from_stage_to_stage)
{
    static struct layers layers;
    static char store[128], cache[128];
    struct layer layer = {0};
    struct fail fail = {0};
    AUTO_FREE char *path = NULL;
    make_dir(store, sizeof(store), "store");
    make_dir(cache, sizeof(cache), "cache");
    layers = (struct layers){.store = store, .cache = cache};
    struct sandbox *sandbox = open_host();
    expect_status(sandbox, "mkdir -p a/b; echo one > a/b/f; ln -s a/b/f link; chmod 600 a/b/f", 0);
    assert_int_equal(layer_pack(&layers, sandbox, &layer, &fail), 0);
    assert_int_equal(layer_unpack(&layers, layer.digest, buffer_peek(&layer.inlined), &path, &fail), 0);
    layer_finish(&layer);
    sandbox_close(&sandbox);
    struct sandbox_plan plan = host_plan();
    plan.layers = (const char *[]){path};
    plan.layer_count = 1;
    sandbox = open_sandbox(&plan);
    expect_text(sandbox, "cat link; stat -c %a a/b/f", "one\n600\n");
    sandbox_close(&sandbox);
}

FIBER_TEST(terminals_and_granted_names_are_had)
{
    struct fail fail = {0};
    int number = -1;
    const struct listener listeners[] = {{.name = "pip", .is_tcp = true, .port = 3128}, {.name = "db"}};
    struct sandbox_plan plan = host_plan();
    plan.listeners = listeners;
    plan.listener_count = 2;
    struct sandbox *sandbox = open_sandbox(&plan);
    AUTO_CLOSE int terminal = sandbox_open_terminal(sandbox, &number, &fail);
    assert_true(terminal >= 0 && number >= 0);
    AUTO_CLOSE int tcp = sandbox_take_listener(sandbox, 0);
    AUTO_CLOSE int local = sandbox_take_listener(sandbox, 1);
    assert_true(tcp >= 0 && local >= 0);
    expect_text(sandbox,
                "echo $SLUICE_GRANT_PIP $SLUICE_GRANT_DB; (exec 3<>/dev/tcp/127.0.0.1/3128) && echo there; "
                "test -S $SLUICE_GRANT_DB && echo there",
                "127.0.0.1:3128 /run/sluice/grant/db\nthere\nthere\n");
    sandbox_close(&sandbox);
}

/* ---- ends ---------------------------------------------------------------------------------- */

static size_t count_children(pid_t parent)
{
    char path[64];
    size_t count = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", parent, parent);
    FILE *list = fopen(path, "r");
    assert_non_null(list);
    for (int pid; fscanf(list, "%d", &pid) == 1;)
        count++;
    fclose(list);
    return count;
}

FIBER_TEST(nothing_outlives_a_sandbox_that_is_closed)
{
    char mark[64];
    snprintf(mark, sizeof(mark), "closed-%d", getpid());
    struct sandbox *sandbox = start_tenacious(mark);
    assert_int_equal(count_children(spawner_pid(spawner)), 2); /* the quota daemon, and apptainer */
    sandbox_close(&sandbox);
    wait_for_marked(mark, 0);
    const int64_t until_ms = clock_ms() + END_MS;
    while (count_children(spawner_pid(spawner)) > 1 && clock_ms() < until_ms)
        await_sleep(5);
    assert_int_equal(count_children(spawner_pid(spawner)), 1);
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
    sandbox_close(&sandbox); /* as a worker's end does */
    wait_for_marked(mark, 0);
}

FIBER_TEST(memory_processes_and_disk_are_watched)
{
    static const struct {
        const char *command, *limit;
    } rows[] = {
        {"perl -e '$x = \"x\" x (200 << 20); sleep 100'", "memory"},
        {"for i in {1..60}; do sleep 100 & done; wait", "processes"},
        {"for i in 1 2 3; do head -c 6M /dev/zero > /tmp/$i; done; sleep 100", "disk"},
        {"for i in 1 2 3; do head -c 6M /dev/zero > /dev/shm/$i; done; sleep 100", "disk"},
    };
    struct sandbox_plan plan = host_plan();
    plan.memory_mib = 64;
    plan.processes = 8;
    plan.disk_mib = 8;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct sandbox *sandbox = open_sandbox(&plan);
        struct sandbox_output output = {0};
        struct fail fail = {0};
        assert_true(sandbox_command(sandbox, rows[i].command, COMMAND_MS, 4096, &output, &fail) < 0);
        assert_non_null(sandbox_breach(sandbox));
        assert_string_equal(sandbox_breach(sandbox), rows[i].limit);
        free(output.text);
        sandbox_close(&sandbox);
    }
}

/* ---- the host and the neighbour ------------------------------------------------------------- */

FIBER_TEST(the_hosts_processes_files_and_network_are_out_of_reach)
{
    char command[512];
    struct sandbox *sandbox = open_host(), *neighbour = open_host();
    pid_t stranger = start_stranger();
    expect_status(neighbour, "echo secret > s; (exec -a neighbour sleep 100) & disown", 0);
    snprintf(command, sizeof(command),
             "kill -9 %d 2>/dev/null && echo killed; ls %s /home /root /var 2>/dev/null; cat "
             "/proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -c -e '[n]eighbour' -e '[a]pptainer'",
             stranger, directory);
    expect_text(sandbox, command, "0\n");
    expect_text(sandbox, "cat /proc/net/dev | grep -c :; (exec 3<>/dev/tcp/1.1.1.1/53) 2>/dev/null || echo nobody",
                "1\nnobody\n");
    expect_text(sandbox,
                "unshare -U true 2>/dev/null || echo refused; mount -t tmpfs x /tmp 2>/dev/null || "
                "echo refused",
                "refused\nrefused\n");
    end_stranger(stranger);
    sandbox_close(&sandbox);
    sandbox_close(&neighbour);
}

/* ------------------------------------------------------------------------------------------------ */

static int set_up_apptainer(void **state)
{
    fixture_tier = TIER_apptainer;
    return set_up(state);
}

#define CONTAINER_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_apptainer, tear_down_plain)

static struct probe probe;

static bool has_apptainer(void)
{
    struct fail fail = {0};
    char cache[] = "/tmp/sluice-test-XXXXXX";
    if (!mkdtemp(cache) || probe_run(cache, NULL, &probe, &fail) < 0)
        return false;
    rmdir(cache);
    const struct probe_result *result = &probe.results[CHECK_apptainer];
    if (!result->is_ok)
        printf("SKIPPED: sandboxes by apptainer: %s\n", result->text);
    return result->is_ok;
}

/* tests/apptainer.sh has fetched one of this kind, which must then be of use to an ordinary user. */
static bool is_needed(const char *kind)
{
    const char *told = getenv("SLUICE_NEEDS_APPTAINER");
    return told && strcmp(told, kind) == 0 && geteuid() != 0;
}

static int group(void)
{
    const struct CMUnitTest always[] = {
        cmocka_unit_test(where_it_is_not_in_path_no_sandbox_is_made_and_its_name_is_said),
    };
    const struct CMUnitTest containers[] = {
        CONTAINER_TEST(commands_run_in_a_root_of_their_own_and_write_where_they_may),
        CONTAINER_TEST(an_image_is_served_read_only_with_its_own_workspace),
        CONTAINER_TEST(no_script_of_an_image_runs_before_the_container_is_confined),
        CONTAINER_TEST(an_image_that_cannot_be_shown_is_blamed_and_one_that_is_not_there_is_the_tasks),
        CONTAINER_TEST(a_layer_that_changes_more_than_the_workspace_is_refused_by_the_tiers_name),
        CONTAINER_TEST(layers_go_from_stage_to_stage),
        CONTAINER_TEST(terminals_and_granted_names_are_had),
        CONTAINER_TEST(nothing_outlives_a_sandbox_that_is_closed),
        CONTAINER_TEST(nothing_outlives_a_command),
        CONTAINER_TEST(nothing_outlives_a_spawner_that_is_killed),
        CONTAINER_TEST(memory_processes_and_disk_are_watched),
        CONTAINER_TEST(the_hosts_processes_files_and_network_are_out_of_reach),
    };
    int failed = cmocka_run_group_tests_name("apptainer", always, NULL, NULL);
    if (!has_apptainer())
        return failed | (is_needed("plain") || is_needed("setuid"));
    return failed | cmocka_run_group_tests_name("apptainer_containers", containers, NULL, NULL);
}

/* ---- where user namespaces are forbidden ------------------------------------------------------ */

static void it_is_chosen_where_user_namespaces_are_forbidden_to_us_and_not_to_it(void **state)
{
    (void)state;
    assert_false(probe.results[CHECK_userns].is_ok);
    assert_int_equal(probe_choose(&probe), TIER_apptainer);
}

/* By a filter that only root can set without giving up that others may gain rights. */
static bool forbid_user_namespaces(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone3, 5, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_unshare, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_NEWUSER, 0, 2),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSPC),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(code) / sizeof(*code), code};
    return syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

static int group_without_user_namespaces(void)
{
    const struct CMUnitTest choice[] = {
        cmocka_unit_test(it_is_chosen_where_user_namespaces_are_forbidden_to_us_and_not_to_it)};
    return has_apptainer() ? group() | cmocka_run_group_tests_name("apptainer_forbidden", choice, NULL, NULL)
                           : is_needed("setuid");
}

static int run_without_user_namespaces(void)
{
    int status = 0;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (!forbid_user_namespaces() || setgroups(0, NULL) < 0 ||
            setresgid(FIXTURE_USER, FIXTURE_USER, FIXTURE_USER) < 0 ||
            setresuid(FIXTURE_USER, FIXTURE_USER, FIXTURE_USER) < 0 || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
            _exit(1);
        printf("and where user namespaces are forbidden\n");
        exit(group_without_user_namespaces());
    }
    waitpid(pid, &status, 0);
    return status != 0;
}

int main(void)
{
    int failed = run_as_everyone(group);
    return geteuid() == 0 ? failed | run_without_user_namespaces() : failed;
}
