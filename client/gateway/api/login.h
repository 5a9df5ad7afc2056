/*
 * login.h - the page's way to bring a token: a cookie that scripts cannot read and other sites cannot send. The cookie
 * is the token itself, so that a gateway that starts anew knows it; over TLS it is sent over nothing else.
 */
#ifndef SLUICE_CLIENT_GATEWAY_API_LOGIN_H
#define SLUICE_CLIENT_GATEWAY_API_LOGIN_H

struct http_call;

void login_run(struct http_call *call);
void logout_run(struct http_call *call);
void me_run(struct http_call *call);

#endif
