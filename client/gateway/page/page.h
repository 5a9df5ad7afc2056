/*
 * page.h - the page of the gateway: one HTML document with its styles and its script inside, made from the sources in
 * this folder when Sluice is built (embed.cmake). It asks nothing of anybody but the server that it came from.
 */
#ifndef SLUICE_CLIENT_GATEWAY_PAGE_PAGE_H
#define SLUICE_CLIENT_GATEWAY_PAGE_PAGE_H

#include "common/base/slice.h"

/* UTF-8, good for ever. */
struct slice page_html(void);

/* The value of Content-Security-Policy to send with it: nothing but its own style and script, by their hashes, runs. */
const char *page_policy(void);

#endif
