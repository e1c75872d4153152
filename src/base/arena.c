/* The arena: bump allocation in blocks. Under AddressSanitizer every block is poisoned and each
 * allocation gets a poisoned gap behind it, so AddressSanitizer finds an overrun inside an arena as
 * it does on the heap. */
#include "base/arena.h"
#include "base/err.h"
#include "base/hex.h"

#include <stdio.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
enum { GAP = 16 };
#else
#define ASAN_POISON_MEMORY_REGION(p, n)   ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
enum { GAP = 0 };
#endif

enum { ALIGN = 16 };

struct arena_block {
    struct arena_block *next;
    size_t size; /* bytes in data */
    size_t used;
    _Alignas(ALIGN) char data[];
};

void arena_init(struct arena *a, size_t max)
{
    *a = ARENA_INIT(max);
}

static void block_free(struct arena_block *block)
{
    ASAN_UNPOISON_MEMORY_REGION(block->data, block->size);
    free(block);
}

void arena_charge(struct arena *a, struct budget *budget)
{
    BUG_ON(a->budget && a->budget != budget);
    a->budget = budget;
}

static void give_back(struct arena *a)
{
    if (a->charged)
        budget_give(a->budget, a->charged);
    a->budget = NULL;
    a->charged = 0;
}

void arena_release(struct arena *a)
{
    give_back(a);
    for (struct arena_block *block = a->blocks, *next; block; block = next) {
        next = block->next;
        block_free(block);
    }
    *a = ARENA_INIT(a->max);
}

void arena_reset(struct arena *a)
{
    struct arena_block *keep = a->blocks;

    if (keep) {
        for (struct arena_block *block = keep->next, *next; block; block = next) {
            next = block->next;
            block_free(block);
        }
        keep->next = NULL;
        keep->used = 0;
        ASAN_POISON_MEMORY_REGION(keep->data, keep->size);
        if (keep->size > 16 * ARENA_BLOCK) {
            block_free(keep);
            keep = NULL;
        }
    }
    /* This also gives back the bytes of the kept block, which is small and is not charged any
     * more. */
    give_back(a);
    a->blocks = keep;
    a->used = 0;
    a->failed = false;
}

static struct arena_block *block_new(struct arena *a, size_t need)
{
    size_t last = a->blocks ? a->blocks->size : 0;
    size_t size = size_max(need, size_min(size_max(last * 2, ARENA_BLOCK), 256 * KIB));
    struct arena_block *block;

    if (a->budget && !budget_take(a->budget, size))
        return NULL;
    block = malloc(sizeof(*block) + size);
    if (!block && a->budget)
        budget_give(a->budget, size);
    if (!block)
        return NULL;
    a->charged += a->budget ? size : 0;
    block->next = a->blocks;
    block->size = size;
    block->used = 0;
    ASAN_POISON_MEMORY_REGION(block->data, size);
    a->blocks = block;
    return block;
}

void *arena_alloc(struct arena *a, size_t size)
{
    size_t max = a->max ? a->max : ARENA_DEFAULT_MAX, need;
    struct arena_block *block = a->blocks;
    char *p;

    if (a->failed || size > max || a->used > max - size) {
        a->failed = true;
        return NULL;
    }
    need = ((size + ALIGN - 1) & ~(size_t)(ALIGN - 1)) + GAP;
    if (!block || block->size - block->used < need)
        block = block_new(a, need);
    if (!block) {
        a->failed = true;
        return NULL;
    }
    p = block->data + block->used;
    block->used += need;
    a->used += size;
    ASAN_UNPOISON_MEMORY_REGION(p, size);
    return memset(p, 0, size);
}

void *arena_array(struct arena *a, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        a->failed = true;
        return NULL;
    }
    return arena_alloc(a, bytes);
}

char *arena_z(struct arena *a, struct str s)
{
    char *copy = arena_alloc(a, s.len + 1);
    if (copy && s.len)
        memcpy(copy, s.p, s.len);
    return copy;
}

struct str arena_str(struct arena *a, struct str s)
{
    char *copy = arena_z(a, s);
    return copy ? str_n(copy, s.len) : STR_EMPTY;
}

struct str arena_lower(struct arena *a, struct str s)
{
    char *copy = arena_z(a, s);

    for (size_t i = 0; copy && i < s.len; i++)
        if (copy[i] >= 'A' && copy[i] <= 'Z')
            copy[i] = (char)(copy[i] - 'A' + 'a');
    return copy ? str_n(copy, s.len) : STR_EMPTY;
}

struct str arena_hex(struct arena *a, const void *bytes, size_t len)
{
    char *text = arena_alloc(a, 2 * len + 1);

    if (!text)
        return STR_EMPTY;
    hex_write(text, bytes, len);
    return str_n(text, 2 * len);
}

struct str arena_fmt(struct arena *a, const char *fmt, ...)
{
    va_list ap;
    char *to;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    BUG_ON(n < 0);
    to = arena_alloc(a, (size_t)n + 1);
    if (!to)
        return STR_EMPTY;
    va_start(ap, fmt);
    vsnprintf(to, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return str_n(to, (size_t)n);
}

int arena_error(const struct arena *a)
{
    return a->failed ? ERR_NO_MEMORY : 0;
}
