#include "client/gateway/api/login.h"

#include <stdio.h>
#include <string.h>

#include "client/gateway/door/admission.h"
#include "client/gateway/door/door.h"
#include "common/net/token.h"

enum { DAY_S = 86400 };

static void set_cookie(struct http_call *call, const char *token, int age_s)
{
    char cookie[TOKEN_SIZE + 128];
    struct buffer nothing = {0};
    snprintf(cookie, sizeof(cookie), DOOR_COOKIE "=%s; Path=/; Max-Age=%d; HttpOnly; SameSite=Strict%s", token, age_s,
             call->gateway->settings->certificate_path ? "; Secure" : "");
    exchange_set_header(call->exchange, "Set-Cookie", cookie);
    explicit_bzero(cookie, sizeof(cookie));
    http_call_answer(call, 204, NULL, &nothing);
}

static void log_in(struct http_call *call)
{
    set_cookie(call, json_string_value(json_object_get(call->body, "token")), 30 * DAY_S);
}

void login_run(struct http_call *call)
{
    const char *token = json_string_value(json_object_get(call->body, "token")), *why;
    int status;
    if (!token) {
        http_call_refuse(call, 400, refusal_wire(REFUSAL_MISSING_FIELD), "token", "token must be a string");
        return;
    }
    call->identity = identities_find(call->gateway->identities, token, &status, &why);
    if (call->identity)
        admission_ask(call, log_in);
    else
        door_refuse_token(call, status, "token", why);
}

void logout_run(struct http_call *call) { set_cookie(call, "", 0); }

/* As the broker has it: a token says what it likes. */
static void tell(struct http_call *call)
{
    const struct identity *identity = call->identity;
    struct buffer body = {0};
    if (identity)
        json_text_printf(&body, "{\"name\":%s,\"role\":%s,\"needs_login\":false}", identity->name,
                         key_role_name(identity->is_admin ? ROLE_ADMIN : ROLE_TRAINER));
    else
        buffer_append_str(&body, "{\"name\":null,\"role\":null,\"needs_login\":true}");
    http_call_answer_json(call, 200, &body);
}

void me_run(struct http_call *call)
{
    char token[TOKEN_SIZE];
    const char *why;
    int status;
    const bool has_token = door_token(call->exchange, token, sizeof(token)) && *token;
    call->identity = identities_find(call->gateway->identities, has_token ? token : NULL, &status, &why);
    explicit_bzero(token, sizeof(token));
    if (call->identity && *caller_public(call->identity->caller))
        admission_ask(call, tell);
    else if (call->identity || !has_token)
        tell(call);
    else
        door_refuse_token(call, status, "", why);
}
