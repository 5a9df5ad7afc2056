#include "workers/agents/ends.h"
#include "workers/agents/proxy/proxy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "common/base/cleanup.h"
#include "workers/agents/proxy/ear.h"
#include "workers/agents/proxy/prompt.h"
#include "workers/agents/proxy/traces/saying.h"
#include "workers/agents/proxy/tree_shown.h"
#include "workers/agents/proxy/traces/traces.h"
#include "workers/live/live.h"

/* ---- handles: nobody inside can guess one of another turn's ------------------------------------------ */

void proxy_mint(const char *prefix, char ret[HANDLE_SIZE])
{
    unsigned char bytes[16];
    (void)!getrandom(bytes, sizeof(bytes), 0); /* so few bytes are always given */
    size_t at = (size_t)snprintf(ret, HANDLE_SIZE, "%s", prefix);
    for (size_t i = 0; i < sizeof(bytes); i++)
        at += (size_t)snprintf(ret + at, HANDLE_SIZE - at, "%02x", bytes[i]);
}

/* ---- what the harness is told --------------------------------------------------------------------------- */

static enum reply_finish finish_of(const struct heard *heard, const struct record_turn *turn)
{
    if (heard->reply.count > 0)
        return REPLY_CALLS;
    return strcmp(turn->finish, "length") == 0 ? REPLY_LENGTH : REPLY_STOP;
}

static void describe_reply(const struct record_turn *turn, size_t sampled, struct proxy_turn *ret)
{
    const struct heard *heard = &ret->heard;
    for (size_t i = 0; i < heard->reply.count; i++) {
        proxy_mint("call_", ret->call_ids[i]);
        ret->calls[i] = (struct reply_call){
            .id = ret->call_ids[i], .name = heard->reply.calls[i].name, .arguments = heard->reply.calls[i].arguments};
    }
    ret->reply = (struct reply){.id = ret->id,
                                .handle = ret->handle,
                                .created = ret->reply.created,
                                .text = heard->text,
                                .thinking = heard->thinking,
                                .calls = ret->calls,
                                .call_count = heard->reply.count,
                                .finish = finish_of(heard, turn),
                                .prompt_tokens = turn->prompt_tokens,
                                .cached_tokens = turn->cached_tokens,
                                .sampled_tokens = sampled};
}

/* What is known of it before it is sampled. */
static void begin_reply(size_t prompt_tokens, struct proxy_turn *ret)
{
    proxy_mint("turn_", ret->id);
    proxy_mint("", ret->handle);
    ret->reply = (struct reply){
        .id = ret->id, .handle = ret->handle, .text = "", .prompt_tokens = prompt_tokens, .created = time(NULL)};
}

/* The same as the message that the harness will give back. */
static bool fill_said(const struct reply *reply, struct said *ret)
{
    *ret = (struct said){.role = SAID_ASSISTANT, .text = strdup(reply->text), .handle = strdup(reply->handle)};
    ret->thinking = reply->thinking ? strdup(reply->thinking) : NULL;
    bool done = ret->text && ret->handle && (ret->thinking || !reply->thinking);
    for (size_t i = 0; i < reply->call_count && done; i++) {
        struct said_call *call = said_add_call(ret);
        done = call && (call->id = strdup(reply->calls[i].id)) && (call->name = strdup(reply->calls[i].name)) &&
               (call->arguments = json_deep_copy(reply->calls[i].arguments));
    }
    return done;
}

/* ---- a turn ------------------------------------------------------------------------------------------------ */

/* Turns and tokens stay used up; a shorter prompt may still fit the context. */
static bool is_used_up(struct proxy *proxy)
{
    const struct task *task = proxy->model.run->task;
    if (proxy->over != PROXY_OVER_TOKENS && proxy->model.turns >= task->max_turns) {
        proxy->over = PROXY_OVER_TURNS;
        fail_set(&proxy->fail, -E2BIG, "all %llu turns are used up", (unsigned long long)task->max_turns);
    }
    if (proxy->over != PROXY_OVER_TURNS && model_is_spent(&proxy->model)) {
        proxy->over = PROXY_OVER_TOKENS;
        fail_set(&proxy->fail, -E2BIG, "all %llu of limits.sampled_tokens are used up",
                 (unsigned long long)task->limits.sampled_tokens);
    }
    return proxy->over == PROXY_OVER_TURNS || proxy->over == PROXY_OVER_TOKENS;
}

/* What a hook made of it, in place of what was said. */
static void retell(struct proxy_turn *turn)
{
    const struct said *told = &turn->told.messages[0];
    turn->reply.text = told->text;
    turn->reply.thinking = told->thinking;
    turn->reply.call_count = told->call_count;
    for (size_t i = 0; i < told->call_count; i++) {
        proxy_mint("call_", turn->call_ids[i]);
        turn->calls[i] = (struct reply_call){
            .id = turn->call_ids[i], .name = told->calls[i].name, .arguments = told->calls[i].arguments};
    }
    if (told->call_count > 0)
        turn->reply.finish = REPLY_CALLS;
    else if (turn->reply.finish == REPLY_CALLS)
        turn->reply.finish = REPLY_STOP;
}

/* Adds what was sampled behind `shown`; takes it out of `sampled`. */
static int add_sampled(struct proxy *proxy, size_t shown, struct model_turn *sampled, const struct reply *reply,
                       struct fail *fail)
{
    struct generation *generation = &sampled->generation;
    struct tree_node *node = tree_add(&proxy->tree, shown);
    if (!node)
        return fail_memory(fail);
    node->is_sampled = true;
    node->messages = calloc(1, sizeof(*node->messages));
    if (!record_turn_copy(&node->turn, &sampled->turn) || !node->messages)
        return tree_drop_last(&proxy->tree), fail_memory(fail);
    node->count = 1;
    node->ids = generation->sampled;
    generation->sampled = (struct tokens){0};
    node->logprobs = take_ptr(&generation->logprobs);
    node->text = take_ptr(&generation->text);
    return fill_said(reply, &node->messages[0]) && saying_add_reply(node, proxy->model.run->record)
               ? 0
               : agent_record_full(fail);
}

static int take_answer(struct proxy *proxy, const struct proxy_turn *turn, struct fail *fail)
{
    char *answer = strdup(turn->reply.text);
    if (!answer)
        return fail_memory(fail);
    free(proxy->model.run->answer);
    proxy->model.run->answer = answer;
    return 0;
}

/* What a hook refuses was sampled all the same, and nobody is told of it. */
static int tell(struct proxy *proxy, size_t shown, struct model_turn *sampled, struct proxy_turn *ret,
                struct fail *fail)
{
    struct fail full = {0};
    describe_reply(&sampled->turn, sampled->generation.sampled.count, ret);
    const int error = hooks_ask_reply(proxy->model.run, proxy->model.turns, &ret->reply, &ret->told, fail);
    if (error < 0 && error != -EPERM)
        return error;
    const bool is_retold = error == 0 && ret->told.count > 0;
    if (is_retold)
        retell(ret);
    const int added = add_sampled(proxy, shown, sampled, &ret->reply, &full);
    if (added < 0)
        return fail_set(fail, added, "%s", full.text);
    ret->node = proxy->tree.count - 1;
    proxy->tree.nodes[ret->node].is_retold = is_retold;
    return error;
}

static int sample(struct proxy *proxy, size_t shown, const struct toolbox *box, const struct proxy_listener *listener,
                  struct proxy_turn *ret, struct fail *fail)
{
    struct tokens prompt = {0};
    struct model_turn sampled = {0};
    bool is_opened = false;
    int error = tree_path(&proxy->tree, shown, &prompt) ? 0 : fail_memory(fail);
    if (error == 0)
        error = ear_look_at_prompt(proxy, &prompt, &is_opened, fail);
    begin_reply(prompt.count, ret);
    const struct ear_turn turn = {&prompt, is_opened, box, &ret->reply, listener};
    if (error == 0)
        error = ear_sample(proxy, &turn, &sampled, fail);
    const bool is_cut = strcmp(sampled.generation.finish, "length") == 0;
    if (error == 0 && !heard_make(sampled.generation.text, is_opened, is_cut, proxy->telling.format, box, &ret->heard))
        error = fail_memory(fail);
    if (error == 0)
        error = tell(proxy, shown, &sampled, ret, fail);
    if (error == 0)
        error = take_answer(proxy, ret, fail);
    if (error == 0)
        proxy->over = PROXY_GOES_ON;
    generation_finish(&sampled.generation);
    tokens_finish(&prompt);
    return error;
}

/* What the harness is told of an error; what cannot get better is the proxy's from then on. */
static enum reply_error take_error(struct proxy *proxy, int error, const struct fail *fail)
{
    if (error == -E2BIG) {
        proxy->over = PROXY_OVER_CONTEXT;
        proxy->fail = *fail;
    } else if (error == -EBADMSG) {
        proxy->refused = *fail;
    } else if (error != -ECANCELED && error != -EPERM && proxy->error == 0) {
        proxy->error = error;
        proxy->fail = *fail;
    }
    return error == -E2BIG                        ? REPLY_TOO_LONG
           : error == -ECANCELED                  ? REPLY_ENDED
           : error == -EPERM || error == -EBADMSG ? REPLY_INVALID /* a hook's refusal, or the template's */
                                                  : REPLY_BROKEN;
}

static bool refuse_over(struct proxy *proxy, enum reply_error *why, struct fail *fail)
{
    *fail = proxy->fail;
    *why = proxy->error != 0 ? REPLY_BROKEN : REPLY_TOO_LONG;
    return false;
}

bool proxy_take_turn(struct proxy *proxy, struct said_request *request, const struct proxy_listener *listener,
                     struct proxy_turn *ret, enum reply_error *why, struct fail *fail)
{
    size_t shown;
    if (proxy->error != 0 || is_used_up(proxy))
        return refuse_over(proxy, why, fail);
    proxy->requests++;
    struct offered *offered = offered_create(request->tools, request->tool_count);
    int error = offered ? hooks_ask_request(&proxy->edits, proxy->model.run, proxy->model.turns + 1, request, fail)
                        : fail_memory(fail);
    if (error == 0)
        error = prompt_find(proxy, request, &offered->box, &shown, fail);
    if (error == 0)
        error = sample(proxy, shown, &offered->box, hooks_are_there(proxy->model.run) ? NULL : listener, ret, fail);
    offered_destroy(&offered);
    if (error < 0)
        *why = take_error(proxy, error, fail);
    return error == 0;
}

void proxy_note_delivered(struct proxy *proxy, size_t node) { proxy->tree.nodes[node].is_delivered = true; }

void proxy_turn_finish(struct proxy_turn *turn)
{
    heard_finish(&turn->heard);
    said_request_finish(&turn->told);
}

bool proxy_count_tokens(struct proxy *proxy, struct said_request *request, uint64_t *ret, enum reply_error *why,
                        struct fail *fail)
{
    struct tokens ids = {0};
    struct offered *offered = offered_create(request->tools, request->tool_count);
    int error = offered ? hook_edits_repeat(&proxy->edits, request, fail) : fail_memory(fail);
    if (error == 0)
        error = prompt_render(proxy, request, &offered->box, &ids, fail);
    offered_destroy(&offered);
    *ret = ids.count;
    tokens_finish(&ids);
    if (error < 0)
        *why = take_error(proxy, error, fail);
    return error == 0;
}

/* ---- the proxy ------------------------------------------------------------------------------------------------ */

int proxy_open(struct proxy *proxy, struct agent_run *run, struct fail *fail)
{
    *proxy = (struct proxy){0};
    snprintf(run->record->agent, sizeof(run->record->agent), "%s", run->task->agent_kind);
    proxy->shown = tree_shown(&proxy->tree);
    live_show_turns(&proxy->shown);
    int error = model_open(&proxy->model, run, fail);
    proxy->model.trusts = true;
    if (error == 0)
        error = tool_telling_find_format(&proxy->model, &proxy->telling, fail);
    if (error == 0)
        error = tool_telling_find_role(&proxy->model, &proxy->telling, fail);
    return error;
}

int proxy_settle(const struct proxy *proxy, int error, struct fail *fail)
{
    struct fail why = {0};
    const int settled = error == -ECANCELED ? 0 : model_settle(&proxy->model, &why);
    return settled < 0 ? fail_set(fail, settled, "%s", why.text) : error;
}

bool proxy_record(struct proxy *proxy)
{
    const struct agent_run *run = proxy->model.run;
    return traces_write(&proxy->tree, run->task->trained, run->record);
}

void proxy_close(struct proxy *proxy)
{
    live_show_turns(NULL);
    model_close(&proxy->model);
    tree_finish(&proxy->tree);
    hook_edits_finish(&proxy->edits);
}
