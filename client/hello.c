/*
 * hello - the whole of Sluice from a trainer's side: submit a task, read its trajectories.
 *
 *     sluice up --engine http://127.0.0.1:8080 &
 *     cc hello.c $(pkg-config --cflags --libs sluice) -o hello && ./hello ['TASK AS JSON']
 */
#include <sluice.h>
#include <stdio.h>

static const char addition[] = "{\"task\": \"addition\", \"agent\": {\"kind\": \"chat\"},"
                               " \"prompt\": \"What is 17 + 25? Put the answer into \\\\boxed{}.\","
                               " \"eval\": {\"kind\": \"math\", \"answer\": \"42\"}}";

static void print(const struct sluice_trajectory *t)
{
    size_t tokens = 0, sampled = 0;
    for (size_t i = 0; i < t->trace_count; i++)
        for (size_t k = 0; k < t->traces[i].token_count; k++, tokens++)
            sampled += t->traces[i].mask[k];
    printf("%s: %s, %zu tokens, %zu of them sampled, reward ", t->rollout, t->outcome, tokens, sampled);
    if (t->has_reward)
        printf("%g\n", t->reward);
    else
        printf("none (%s)\n", t->detail);
}

static int hello(struct sluice_client *client, const char *task)
{
    enum { SAMPLES = 2 };
    int failed = sluice_submit(client, "hello", "hello", SAMPLES, task);
    if (!failed)
        failed = sluice_subscribe(client, "hello", 1);
    for (int i = 0; i < SAMPLES && !failed; i++) {
        const struct sluice_trajectory *trajectory;
        failed = sluice_next(client, 600000, &trajectory);
        if (!failed)
            print(trajectory);
    }
    return failed;
}

int main(int argc, char **argv)
{
    struct sluice_client *client = sluice_connect(NULL);
    if (!client)
        return 1;
    int failed = hello(client, argc > 1 ? argv[1] : addition);
    if (failed)
        fprintf(stderr, "hello: %s\n", sluice_error(client));
    sluice_close(&client);
    return failed ? 1 : 0;
}
