/* google.c - Google's generateContent, as Gemini CLI speaks it: what is asked. What is answered: google_reply.c. */
#include "workers/agents/proxy/dialects/google_reply.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "workers/agents/proxy/dialects/body_messages.h"
#include "workers/agents/proxy/dialects/dialects.h"

/* ---- paths ------------------------------------------------------------------------------------- */

static const struct {
    const char *verb;
    enum dialect_ask ask;
    bool is_stream;
} verbs[] = {{":generateContent", ASK_TURN, false},
             {":streamGenerateContent", ASK_TURN, true},
             {":countTokens", ASK_COUNT_TOKENS, false}};

/* Behind "/v1beta/models" or the like of another version; NULL: it begins otherwise. */
static const char *behind_models(const char *path)
{
    static const char *const roots[] = {"/v1beta/models", "/v1alpha/models", "/v1/models"};
    for (size_t i = 0; i < sizeof(roots) / sizeof(*roots); i++)
        if (strncmp(path, roots[i], strlen(roots[i])) == 0)
            return path + strlen(roots[i]);
    return NULL;
}

static bool match(const char *method, const char *path, enum dialect_ask *ask, bool *is_stream, struct slice *model)
{
    const char *rest = behind_models(path), *colon = rest ? strrchr(rest, ':') : NULL;
    *ask = ASK_MODELS;
    *is_stream = false;
    *model = slice_of(NULL, 0);
    if (rest && !rest[0])
        return strcmp(method, "GET") == 0;
    if (!colon || rest[0] != '/' || colon == rest + 1 || strcmp(method, "POST") != 0)
        return false;
    for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
        if (strcmp(verbs[i].verb, colon) == 0) {
            *ask = verbs[i].ask;
            *is_stream = verbs[i].is_stream;
            *model = slice_of(rest + 1, (size_t)(colon - rest) - 1);
            return true;
        }
    return false;
}

/* ---- keys -------------------------------------------------------------------------------------- */

enum { KEY_MAX = 64 };

/* "systemInstruction" as "system_instruction"; this API takes both. */
static const char *snake(const char *key, char ret[KEY_MAX])
{
    size_t len = 0;
    for (; *key && len + 2 < KEY_MAX; key++) {
        const bool is_upper = *key >= 'A' && *key <= 'Z';
        if (is_upper)
            ret[len++] = '_';
        ret[len++] = is_upper ? (char)(*key - 'A' + 'a') : *key;
    }
    ret[len] = '\0';
    return ret;
}

/* The key by which it is there, in `buffer` if that is the other one. */
static const char *key_of(const struct body_place *in, const char *key, char buffer[KEY_MAX])
{
    if (json_object_get(in->value, key) || !json_object_get(in->value, snake(key, buffer)))
        return key;
    return buffer;
}

static struct body_place either(const struct body_place *in, const char *key)
{
    char other[KEY_MAX];
    struct body_place place = body_in(in, key_of(in, key, other));
    place.key = key; /* which outlives this call */
    return place;
}

static bool lacks(struct body *body, const struct body_place *in, const char *key, const char *words)
{
    char other[KEY_MAX];
    return body_lacks(body, in, key_of(in, key, other), words);
}

/* ---- what is said ------------------------------------------------------------------------------ */

/* The key of the one answer that a response is, if it was said so: {"output": "..."}, {"error": "..."}. */
static const char *only_text(const json_t *response)
{
    static const char *const keys[] = {"output", "result", "error"};
    for (size_t i = 0; json_object_size(response) == 1 && i < sizeof(keys) / sizeof(*keys); i++)
        if (json_is_string(json_object_get(response, keys[i])))
            return keys[i];
    return NULL;
}

static bool add_response(struct body *body, const struct body_place *response)
{
    const char *key = only_text(response->value);
    body_message(body)->is_error = json_object_size(response->value) == 1 && json_object_get(response->value, "error");
    if (key)
        return body_add_text(body, response, key);
    AUTO_FREE char *json = json_dumps(response->value, JSON_COMPACT);
    return json ? body_add_words(body, json) : body_out_of_memory(body);
}

/* The id of the first call of that name in the turn before that no result has yet; NULL: there is none. */
static const char *unanswered(const struct said_request *request, const char *name)
{
    size_t turn = request->count, seen = 0, before = 0;
    while (turn > 0 && request->messages[turn - 1].role != SAID_ASSISTANT)
        turn--;
    for (size_t i = turn; i + 1 < request->count; i++)
        before += request->messages[i].name && strcmp(request->messages[i].name, name) == 0;
    const struct said *said = turn > 0 ? &request->messages[turn - 1] : NULL;
    for (size_t i = 0; said && i < said->call_count; i++)
        if (strcmp(said->calls[i].name, name) == 0 && seen++ == before)
            return said->calls[i].id;
    return NULL;
}

static bool read_result(struct body *body, const struct body_place *part, const struct body_place *place)
{
    const struct body_place response = body_in(place, "response");
    if (!body_begin(body, part, SAID_TOOL))
        return false;
    struct said *result = body_message(body);
    if (!body_name(body, place, "name", &result->name) || !body_text(body, place, "id", &result->call_id) ||
        !body_lacks(body, place, "parts", "images and other media are not supported"))
        return false;
    if (!json_is_object(response.value))
        return body_refuse_kind(body, &response, "an object");
    if (!result->call_id) {
        const char *id = unanswered(body->request, result->name);
        result->call_id = strdup(id ? id : "");
    }
    return result->call_id ? add_response(body, &response) : body_out_of_memory(body);
}

static bool read_call(struct body *body, const struct body_place *call_place)
{
    struct said_call *call = body_add_call(body, call_place);
    if (!call || !body_name(body, call_place, "name", &call->name) || !body_text(body, call_place, "id", &call->id) ||
        !body_arguments(body, call_place, "args", call))
        return false;
    if (!call->id)
        call->id = strdup("");
    return call->id || body_out_of_memory(body);
}

static bool read_signature(struct body *body, const struct body_place *part)
{
    const struct body_place place = either(part, "thoughtSignature");
    if (!place.value)
        return true;
    if (!json_is_string(place.value))
        return body_refuse_kind(body, &place, "a string");
    AUTO_FREE char *handle = google_handle(json_string_value(place.value));
    return handle ? body_add_handle(body, handle, "") : body_out_of_memory(body);
}

/* Whether a content of the model's has the turn's handle, or one of them has none. */
static bool is_of_turn(const struct said *turn, const struct body_place *parts)
{
    const char *signature = NULL;
    for (size_t i = 0; !signature && i < json_array_size(parts->value); i++) {
        const struct body_place part = body_at(parts, i);
        signature = json_string_value(either(&part, "thoughtSignature").value);
    }
    AUTO_FREE char *handle = signature ? google_handle(signature) : NULL;
    return !handle || !turn->handle || strcmp(turn->handle, handle) == 0;
}

/* A turn that was streamed may come back as a content for each event, in a row. */
static bool take_turn(struct body *body, const struct body_place *content, const struct body_place *parts)
{
    const struct said *turn = body_message(body);
    const bool goes_on = turn && turn->role == SAID_ASSISTANT && is_of_turn(turn, parts);
    return goes_on || body_begin(body, content, SAID_ASSISTANT);
}

/* NULL: there is none. */
static const char *first_key(const struct body_place *place)
{
    return json_object_iter_key(json_object_iter((json_t *)(uintptr_t)place->value));
}

static bool refuse_part(struct body *body, const struct body_place *part)
{
    static const char *const media[] = {"inlineData", "fileData", "inline_data", "file_data"};
    for (size_t i = 0; i < sizeof(media) / sizeof(*media); i++)
        if (json_object_get(part->value, media[i]))
            return body_refuse(body, part, "%s: images and other media are not supported", media[i]);
    const char *key = first_key(part);
    return body_refuse(body, part, "\"%.64s\": this is not supported here", key ? key : "");
}

static bool read_model_part(struct body *body, const struct body_place *part)
{
    const struct body_place call = either(part, "functionCall");
    bool is_thought = false;
    if (!read_signature(body, part) || !body_flag(body, part, "thought", &is_thought))
        return false;
    if (call.value)
        return body_object(body, &call) && read_call(body, &call);
    if (!json_object_get(part->value, "text"))
        return refuse_part(body, part);
    return is_thought ? body_append_thinking(body, part, "text") : body_append_text(body, part, "text");
}

/* A result is a message of its own; what is said around it is the user's. */
static bool read_user_part(struct body *body, const struct body_place *part)
{
    const struct body_place result = either(part, "functionResponse");
    const struct said *message = body_message(body);
    if (result.value)
        return body_object(body, &result) && read_result(body, part, &result);
    if (!json_object_get(part->value, "text"))
        return refuse_part(body, part);
    return ((message && message->role == SAID_USER) || body_begin(body, part, SAID_USER)) &&
           body_add_text(body, part, "text");
}

static bool read_content(struct body *body, const struct body_place *content)
{
    const struct body_place parts = body_in(content, "parts"), role = body_in(content, "role");
    const char *word = "user";
    if (!body_word(body, content, "role", &word))
        return false;
    if (strcmp(word, "model") == 0)
        return take_turn(body, content, &parts) && body_each(body, &parts, read_model_part);
    if (!text_is_one_of(word, "user|function|tool"))
        return body_refuse_word(body, &role);
    return body_end(body) && body_each(body, &parts, read_user_part);
}

static bool read_system_part(struct body *body, const struct body_place *part)
{
    return json_object_get(part->value, "text") ? body_add_text(body, part, "text") : refuse_part(body, part);
}

static bool read_system(struct body *body, const struct body_place *root)
{
    const struct body_place system = either(root, "systemInstruction"), parts = body_in(&system, "parts");
    if (!body_object(body, &system))
        return false;
    return !parts.value || (body_begin(body, &system, SAID_SYSTEM) && body_each(body, &parts, read_system_part));
}

/* ---- tools ------------------------------------------------------------------------------------- */

/* Its schemas call their types by upper-case words ("STRING"), unlike all others. */
static void lower_types(json_t *schema)
{
    const char *key;
    size_t at;
    json_t *value;
    char word[16];
    if (json_is_array(schema))
        json_array_foreach(schema, at, value) lower_types(value);
    json_object_foreach(schema, key, value)
    {
        const char *type = strcmp(key, "type") == 0 ? json_string_value(value) : NULL;
        if (type && text_is_one_of(type, "OBJECT|STRING|NUMBER|INTEGER|BOOLEAN|ARRAY|NULL")) {
            for (size_t i = 0; i <= strlen(type); i++)
                word[i] = (char)(type[i] >= 'A' ? type[i] - 'A' + 'a' : type[i]);
            json_string_set(value, word);
        } else if (!text_is_one_of(key, "enum|default|example|const")) {
            lower_types(value);
        }
    }
}

static bool read_function(struct body *body, const struct body_place *function)
{
    char other[KEY_MAX];
    const struct body_place schema = either(function, "parametersJsonSchema");
    if (schema.value)
        return body_add_tool(body, function, NULL, key_of(function, "parametersJsonSchema", other));
    if (!body_add_tool(body, function, NULL, "parameters"))
        return false;
    struct said_tool *tool = &body->request->tools[body->request->tool_count - 1];
    json_t *own = json_deep_copy(tool->parameters);
    lower_types(own);
    json_decref(tool->parameters);
    tool->parameters = own;
    return own || body_out_of_memory(body);
}

static bool read_tool(struct body *body, const struct body_place *tool)
{
    const struct body_place functions = either(tool, "functionDeclarations");
    if (functions.value)
        return body_each(body, &functions, read_function);
    const char *key = first_key(tool);
    return !key || body_refuse(body, tool, "\"%.64s\": tools of the provider's are not supported", key);
}

static bool read_tools(struct body *body, const struct body_place *root)
{
    const struct body_place tools = body_in(root, "tools"), config = either(root, "toolConfig");
    const struct body_place calling = either(&config, "functionCallingConfig"), mode = body_in(&calling, "mode");
    return body_each(body, &tools, read_tool) && body_object(body, &config) && body_object(body, &calling) &&
           body_tool_choice(body, &mode, "AUTO|MODE_UNSPECIFIED", "NONE");
}

/* ---- a request --------------------------------------------------------------------------------- */

static bool read_config(struct body *body, const struct body_place *root)
{
    static const char forced[] = "a format that is forced on the model is not supported";
    const struct body_place config = either(root, "generationConfig"), format = either(&config, "responseMimeType");
    const struct body_place kinds = either(&config, "responseModalities");
    char other[KEY_MAX];
    if (!body_object(body, &config))
        return false;
    if (format.value && strcmp(json_is_string(format.value) ? json_string_value(format.value) : "", "text/plain") != 0)
        return body_refuse(body, &format, forced);
    return body_each_one_of(body, &kinds, "TEXT|text") && lacks(body, &config, "responseSchema", forced) &&
           lacks(body, &config, "responseJsonSchema", forced) &&
           lacks(body, &config, "stopSequences", "sequences that end a turn are not supported") &&
           body_wants_one(body, &config, key_of(&config, "candidateCount", other)) &&
           body_number(body, &config, key_of(&config, "maxOutputTokens", other), &body->request->max_tokens);
}

static bool read_root(struct body *body, const struct body_place *root)
{
    const struct body_place inner = body_in(root, "generateContentRequest"); /* countTokens may hold it whole */
    const struct body_place *asked = json_is_object(inner.value) ? &inner : root;
    const struct body_place contents = body_in(asked, "contents");
    body->request->wants_usage = true;
    return lacks(body, asked, "cachedContent", "nothing is kept between requests: say all of it in contents") &&
           read_config(body, asked) && read_system(body, asked) && body_each(body, &contents, read_content) &&
           read_tools(body, asked);
}

static int read_body(const json_t *body, struct said_request *ret, struct fail *fail)
{
    return body_run(body, read_root, ret, fail);
}

const struct dialect dialect_google = {
    .name = "google",
    .match = match,
    .read = read_body,
    .write = google_write,
    .stream_begin = google_stream_begin,
    .stream_thinking = google_stream_thinking,
    .stream_text = google_stream_text,
    .stream_end = google_stream_end,
    .keep_alive = "\n", /* its Python client takes a comment for data */
    .write_error = google_write_error,
    .stream_error = google_stream_error,
    .write_count = google_write_count,
};
