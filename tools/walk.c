/* Records which functions a request runs, for tools/walk. The build has -finstrument-functions, so
 * every function calls __cyg_profile_func_enter(). The record is a file that WALK_FILE names; the
 * script maps the same file and switches the recording on and off. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PLAIN __attribute__((no_instrument_function))

enum { ENTRIES_MAX = 1 << 20 };

struct entry {
    uint64_t function; /* its offset in the program */
    uint64_t thread;
};

struct record {
    _Atomic(uint64_t) on, count;
    struct entry entries[ENTRIES_MAX];
};

extern char __executable_start;
void __cyg_profile_func_enter(void *function, void *caller);
void __cyg_profile_func_exit(void *function, void *caller);

static struct record *record;
static __thread uint64_t thread;

PLAIN __attribute__((constructor(101))) static void record_open(void)
{
    const char *path = getenv("WALK_FILE");
    int fd = path ? open(path, O_RDWR | O_CREAT, 0600) : -1;

    if (fd < 0 || ftruncate(fd, sizeof(struct record)) < 0)
        return;
    void *map = mmap(NULL, sizeof(struct record), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    record = map == MAP_FAILED ? NULL : map;
}

PLAIN void __cyg_profile_func_enter(void *function, void *caller)
{
    (void)caller;
    if (!record || !atomic_load_explicit(&record->on, memory_order_relaxed))
        return;
    if (!thread)
        thread = (uint64_t)syscall(SYS_gettid);
    uint64_t i = atomic_fetch_add(&record->count, 1);
    if (i < ENTRIES_MAX)
        record->entries[i] =
            (struct entry){(uint64_t)((char *)function - &__executable_start), thread};
}

PLAIN void __cyg_profile_func_exit(void *function, void *caller)
{
    (void)function;
    (void)caller;
}
