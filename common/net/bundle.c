#include "common/net/bundle.h"

#include <endian.h>
#include <string.h>

enum { LENGTH_BYTES = 4 };

bool bundle_add(struct buffer *bundle, struct slice message)
{
    static const uint8_t mark = BUNDLE_MARK;
    const uint32_t len = htole32((uint32_t)message.len);
    return buffer_reserve(bundle, sizeof(mark) + LENGTH_BYTES + message.len) && /* all of it, or nothing */
           (bundle->len > 0 || buffer_append(bundle, &mark, sizeof(mark))) &&
           buffer_append(bundle, &len, LENGTH_BYTES) && buffer_append(bundle, message.data, message.len);
}

struct slice bundle_peek(const struct buffer *bundle)
{
    struct slice first;
    size_t at = 0;
    return bundle_next(buffer_peek(bundle), &at, &first) == 1 && at == bundle->len ? first : buffer_peek(bundle);
}

bool is_bundle(struct slice bytes) { return bytes.len > 0 && bytes.data[0] == BUNDLE_MARK; }

int bundle_next(struct slice bundle, size_t *at, struct slice *ret)
{
    uint32_t len;
    *at = *at ? *at : 1;
    if (*at == bundle.len)
        return 0;
    if (bundle.len - *at < LENGTH_BYTES)
        return -1;
    memcpy(&len, bundle.data + *at, LENGTH_BYTES);
    len = le32toh(len);
    *at += LENGTH_BYTES;
    if (bundle.len - *at < len)
        return -1;
    *ret = slice_of(bundle.data + *at, len);
    *at += len;
    return 1;
}
