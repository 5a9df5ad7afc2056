/*
 * What an inference server streams: the first byte chooses the form, the second one how long the pieces are that it
 * comes in, the rest is the stream. However it is cut it is told alike, in whole characters, and folded into the same
 * document; what that holds is read as an answer, or refused with a sentence.
 */
#include <math.h>

#include "common/base/cleanup.h"
#include "common/base/utf8.h"
#include "tests/fuzz.h"
#include "workers/engines/dialects/sglang/sglang_reply.h"
#include "workers/engines/dialects/teller.h"
#include "workers/engines/dialects/vllm/vllm_reply.h"

enum { TOKENS_MAX = 64 };

typedef int read_reply(const struct json_doc *doc, struct sampled_tokens *streamed, const struct tokens *prompt,
                       uint64_t max_tokens, struct generation *ret, struct fail *fail);

static const struct {
    const struct fold_form *form;
    read_reply *read;
} forms[] = {{&vllm_stream_generate, vllm_reply_generate},
             {&vllm_stream_complete, vllm_reply_complete},
             {&sglang_stream_form, sglang_reply_read}};

struct folded {
    struct fold fold;
    struct teller teller;
    struct buffer text; /* told, in a row */
    size_t ids;         /* likewise */
    int error;
    struct fail fail;
};

static void on_told(void *arg, struct slice text)
{
    (void)arg;
    must(text.len > 0 && utf8_is_valid(text));
}

static void on_event(void *arg, const struct fold_event *event)
{
    struct folded *folded = arg;
    must(event->ids.count > 0 || event->text.len > 0 || event->is_end);
    teller_take(&folded->teller, event->text);
    teller_tell(&folded->teller);
    buffer_append(&folded->text, event->text.data, event->text.len);
    folded->ids += event->ids.count;
}

static void fold(const struct fold_form *form, struct slice stream, size_t step, struct folded *ret)
{
    static const struct engine_listener listener = {.heard = on_told};
    *ret = (struct folded){.fold = {.form = form, .sampled.most = TOKENS_MAX}, .teller = {.listener = &listener}};
    for (size_t at = 0, len; at < stream.len && ret->error == 0; at += len) {
        len = step > 0 && step < stream.len - at ? step : stream.len - at;
        AUTO_FREE uint8_t *piece = malloc(len); /* so that a sanitizer sees a read beyond its end */
        memcpy(piece, stream.data + at, len);
        ret->error = fold_take(&ret->fold, slice_of(piece, len), on_event, ret, &ret->fail);
    }
    must(ret->error <= 0 && (ret->error == 0 || ret->fail.text[0]));
    must(ret->error < 0 || ret->ids == ret->fold.sampled.ids.count);
}

static void finish(struct folded *folded)
{
    teller_finish(&folded->teller);
    buffer_finish(&folded->text);
    fold_finish(&folded->fold);
}

static void check_document(read_reply *read, struct slice text, struct fold *fold)
{
    const uint32_t ids[] = {1, 2, 3};
    const struct tokens prompt = {.ids = (uint32_t *)ids, .count = 3};
    struct generation got = {0};
    struct fail fail = {0};
    struct json_doc doc = {0};
    int error = json_doc_parse(text, &doc, &fail);
    if (error == 0)
        error = read(&doc, fold->is_whole ? NULL : &fold->sampled, &prompt, TOKENS_MAX, &got, &fail);
    must(error <= 0 && (error == 0 || fail.text[0]));
    for (size_t i = 0; error == 0 && i < got.sampled.count; i++)
        must(got.sampled.ids[i] <= INT32_MAX && isfinite(got.logprobs[i]) && got.logprobs[i] <= 0);
    must(error < 0 || (got.sampled.count > 0 && got.sampled.count <= TOKENS_MAX));
    generation_finish(&got);
    json_doc_finish(&doc);
}

static void check_same(const struct sampled_tokens *a, const struct sampled_tokens *b)
{
    must(tokens_equal(&a->ids, &b->ids) && a->valued == b->valued);
    must(a->valued == 0 || memcmp(a->logprobs, b->logprobs, a->valued * sizeof(*a->logprobs)) == 0);
    must(a->valued <= a->ids.count && a->ids.count <= TOKENS_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct folded whole, cut;
    AUTO_BUFFER one = {0}, other = {0};
    if (size < 2)
        return 0;
    const size_t which = data[0] % (sizeof(forms) / sizeof(*forms));
    const struct slice stream = slice_of(data + 2, size - 2);
    fold(forms[which].form, stream, 0, &whole);
    fold(forms[which].form, stream, 1 + data[1] % 64, &cut);
    fold_write(&whole.fold, &one);
    fold_write(&cut.fold, &other);
    must(whole.error == cut.error && strcmp(whole.fail.text, cut.fail.text) == 0);
    must(slice_equal(buffer_peek(&one), buffer_peek(&other)));
    must(whole.ids == cut.ids && slice_equal(buffer_peek(&whole.text), buffer_peek(&cut.text)));
    must(whole.fold.is_finished == cut.fold.is_finished && whole.fold.is_given_up == cut.fold.is_given_up);
    check_same(&whole.fold.sampled, &cut.fold.sampled);
    check_document(forms[which].read, buffer_peek(&one), &whole.fold);
    finish(&whole);
    finish(&cut);
    return 0;
}
