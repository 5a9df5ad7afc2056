/*
 * fuzz_replay DIRECTORY - runs a fuzz target over every file of a corpus, built by any compiler.
 *
 * Each file there was once new to the fuzzer or a crash; the target aborts where one is still
 * wrong.
 */
#include <dirent.h>

#include "common/base/cleanup.h"
#include "tests/fuzz.h"

/* A replay invents nothing: the mutators are linked and never called. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
    (void)data, (void)max_size;
    return size;
}

static bool replay(const char *folder, const char *name)
{
    char path[4096], part[4096];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    AUTO_FCLOSE FILE *file = fopen(path, "rb");
    AUTO_BUFFER bytes = {0};
    size_t got;
    while (file && (got = fread(part, 1, sizeof(part), file)) > 0)
        buffer_append(&bytes, part, got);
    /* Exactly as long as it is, so that a sanitizer sees a read beyond its end. */
    AUTO_FREE uint8_t *exact = malloc(bytes.len ? bytes.len : 1);
    if (!file || ferror(file) || bytes.failed || !exact)
        return false;
    if (bytes.len)
        memcpy(exact, bytes.data, bytes.len);
    fprintf(stderr, "%s\n", name); /* the last one named is the one that failed */
    LLVMFuzzerTestOneInput(exact, bytes.len);
    return true;
}

int main(int argc, char **argv)
{
    DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
    if (!folder) {
        fprintf(stderr, "usage: fuzz_replay DIRECTORY\n");
        return 2;
    }
    size_t count = 0;
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.') {
            if (!replay(argv[1], entry->d_name)) {
                fprintf(stderr, "cannot read %s/%s\n", argv[1], entry->d_name);
                return 1;
            }
            count++;
        }
    closedir(folder);
    printf("%zu inputs replayed\n", count);
    return count > 0 ? 0 : 1;
}
