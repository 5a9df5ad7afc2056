#include "common/http/head.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- each line ----------------------------------------------------------------------------------------- */

struct lines {
    const char *fault;
};

static bool is_token(const char *text)
{
    static const char marks[] = "!#$%&'*+-.^_`|~";
    const char *c = text;
    while ((*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
           (*c && strchr(marks, *c)))
        c++;
    return c > text && !*c;
}

bool head_is_text(const char *text)
{
    for (const char *c = text; *c; c++)
        if (((unsigned char)*c < 0x20 && *c != '\t') || *c == 0x7f)
            return false;
    return true;
}

/*
 * Name and value of a line lie beside each other where they came in, with but a NUL and blanks between them. Of one
 * that was folded MHD moves the name elsewhere, and puts the next line behind it.
 */
static bool is_folded(const char *name, const char *value)
{
    const char *at = name + strlen(name) + 1;
    if ((uintptr_t)value < (uintptr_t)at || (uintptr_t)value - (uintptr_t)at > 65536)
        return true;
    while (at < value && (*at == ' ' || *at == '\t'))
        at++;
    return at != value;
}

/* In MHD's memory, which is this request's alone. */
static void trim_right(const char *value)
{
    char *end = (char *)(uintptr_t)value + strlen(value);
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        *--end = '\0';
}

static enum MHD_Result check_line(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct lines *lines = arg;
    (void)kind;
    if (!name || !value || !is_token(name))
        lines->fault = "a header has a name that is none";
    else if (is_folded(name, value))
        lines->fault = "a header goes on in another line";
    else if (!head_is_text(value))
        lines->fault = "a header has a control character";
    else
        trim_right(value);
    return lines->fault ? MHD_NO : MHD_YES;
}

/*
 * MHD takes a line without a name for the empty one that ends a head, and what follows it for a body or for the next
 * request. It puts a NUL in the place of each CR and LF, and of the colon. So a head that ends by CRLF CRLF has four,
 * and no more. Where lone LFs stand there, which MHD takes as well, this cannot be told; so they are refused.
 */
static const char *check_end(const struct exchange *exchange, const char *method)
{
    static const char nuls[4];
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(exchange->connection->of,
                                                                   MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    const char *end = info ? method + info->header_size : NULL;
    const bool is_sure = info && info->header_size > 5 && memcmp(end - 4, nuls, 4) == 0 && end[-5] != '\0';
    return is_sure ? NULL : "the head does not end with two line ends, or has a header without a name";
}

/* ---- what they say together --------------------------------------------------------------------------- */

static const char *check_length(const struct exchange *exchange)
{
    const char *coding = exchange_header(exchange, MHD_HTTP_HEADER_TRANSFER_ENCODING);
    const size_t lengths = exchange_header_count(exchange, MHD_HTTP_HEADER_CONTENT_LENGTH);
    if (lengths > 1)
        return "there are two Content-Lengths";
    if (!coding)
        return NULL;
    if (lengths > 0)
        return "there are a Content-Length and a Transfer-Encoding";
    if (exchange->is_old || exchange_header_count(exchange, MHD_HTTP_HEADER_TRANSFER_ENCODING) > 1 ||
        strcasecmp(coding, "chunked") != 0)
        return "the Transfer-Encoding is another than chunked, or more than one";
    return NULL;
}

static const char *check_host(const struct exchange *exchange)
{
    const size_t hosts = exchange_header_count(exchange, MHD_HTTP_HEADER_HOST);
    return hosts > 1 ? "there are two Hosts" : hosts == 0 && !exchange->is_old ? "there is no Host" : NULL;
}

const char *head_check(const struct exchange *exchange, const char *method)
{
    struct lines lines = {.fault = check_length(exchange)}; /* as MHD saw them: before they are trimmed */
    if (!lines.fault)
        MHD_get_connection_values(exchange->connection->of, MHD_HEADER_KIND, check_line, &lines);
    if (!lines.fault)
        lines.fault = check_host(exchange);
    if (!lines.fault)
        lines.fault = check_end(exchange, method);
    if (!lines.fault && !is_token(method))
        lines.fault = "the method is none";
    return lines.fault ? lines.fault : exchange->target.fault;
}

struct trailer {
    const char *last; /* name of the head's last line */
    bool has_stale, has_own;
};

static enum MHD_Result look_at_line(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct trailer *trailer = arg;
    (void)value;
    if (kind == MHD_HEADER_KIND)
        trailer->last = name;
    else if (name == trailer->last)
        trailer->has_stale = true;
    else
        trailer->has_own = true;
    return MHD_YES;
}

/* MHD sees the end of a trailer as it sees that of a head. */
const char *head_check_trailer(const struct exchange *exchange, bool *ret_is_last)
{
    struct trailer trailer = {0};
    MHD_get_connection_values(exchange->connection->of, MHD_HEADER_KIND, look_at_line, &trailer);
    MHD_get_connection_values(exchange->connection->of, MHD_FOOTER_KIND, look_at_line, &trailer);
    *ret_is_last = trailer.has_stale || trailer.has_own;
    return trailer.has_own ? "headers behind the body are not read" : NULL;
}

uint64_t head_body_size(const struct exchange *exchange)
{
    const char *length = exchange_header(exchange, MHD_HTTP_HEADER_CONTENT_LENGTH);
    if (exchange_header(exchange, MHD_HTTP_HEADER_TRANSFER_ENCODING))
        return UINT64_MAX;
    return length ? strtoull(length, NULL, 10) : 0; /* MHD has seen to its being a number */
}

bool head_expects(const struct exchange *exchange) { return exchange_header(exchange, MHD_HTTP_HEADER_EXPECT) != NULL; }
