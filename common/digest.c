#include "common/digest.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <unistd.h>

static bool finish(EVP_MD_CTX *context, char ret[DIGEST_SIZE])
{
    unsigned char raw[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    if (EVP_DigestFinal_ex(context, raw, &len) != 1)
        return false;
    size_t at = (size_t)snprintf(ret, DIGEST_SIZE, "sha256:");
    for (unsigned i = 0; i < len; i++)
        at += (size_t)snprintf(ret + at, DIGEST_SIZE - at, "%02x", raw[i]);
    return true;
}

bool digest_of(struct slice bytes, char ret[DIGEST_SIZE])
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool good = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1 &&
                EVP_DigestUpdate(context, bytes.data, bytes.len) == 1 && finish(context, ret);
    EVP_MD_CTX_free(context);
    return good;
}

bool digest_of_file(int fd, char ret[DIGEST_SIZE])
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool good = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1;
    char chunk[65536];
    ssize_t got = 0;
    while (good && (got = read(fd, chunk, sizeof(chunk))) > 0)
        good = EVP_DigestUpdate(context, chunk, (size_t)got) == 1;
    good = good && got == 0 && finish(context, ret);
    EVP_MD_CTX_free(context);
    return good;
}

bool digest_is_valid(const char *digest)
{
    if (strncmp(digest, "sha256:", 7) != 0 || strlen(digest) != 7 + 64)
        return false;
    return strspn(digest + 7, "0123456789abcdef") == 64;
}
