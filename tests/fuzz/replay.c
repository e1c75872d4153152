/* Runs a fuzz target over the files of its corpus, without a fuzzer: `fuzz_json DIR...`. Each file
 * is one test; a crash ends the run with its name printed. */
#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = NULL;
    size_t size = 0, cap = 0, n;

    if (!f)
        return -1;
    do {
        if (size == cap)
            data = realloc(data, cap = cap ? cap * 2 : 4096);
        n = fread(data + size, 1, cap - size, f);
        size += n;
    } while (n > 0);
    fclose(f);
    fprintf(stderr, "%s\n", path);
    /* An exact copy, so that reading one byte past the end is seen by the sanitizer. */
    uint8_t *exact = malloc(size ? size : 1);
    for (size_t i = 0; i < size; i++)
        exact[i] = data[i];
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    free(data);
    return 0;
}

int main(int argc, char **argv)
{
    int passed = 0, failed = 0;

    for (int i = 1; i < argc; i++) {
        DIR *dir = opendir(argv[i]);
        struct dirent *entry;
        if (!dir) {
            fprintf(stderr, "%s: no such folder\n", argv[i]);
            failed++;
            continue;
        }
        while ((entry = readdir(dir))) {
            char path[PATH_MAX];
            if (entry->d_name[0] == '.')
                continue;
            snprintf(path, sizeof(path), "%s/%s", argv[i], entry->d_name);
            if (replay(path) == 0)
                passed++;
            else
                failed++;
        }
        closedir(dir);
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed || passed == 0;
}
