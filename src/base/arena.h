/* Memory that is freed all at once: one arena per request, task or command. Allocation only moves a
 * pointer, and single allocations cannot be freed. An arena may be handed from thread to thread,
 * but only one thread may use it at a time. An allocation that would pass the arena's limit returns
 * NULL, and the arena stays failed until it is reset. A caller that makes a few small allocations
 * of fixed size under a large limit may check arena_error() once, before it uses the memory. An
 * allocation whose size came from a peer must always be checked. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/budget.h"
#include "base/str.h"

#include <stdarg.h>

struct arena_block;

struct arena {
    struct arena_block *blocks; /* newest first */
    size_t used;                /* bytes handed out, in all blocks */
    size_t max;                 /* limit of `used`, in bytes; 0: ARENA_DEFAULT_MAX */
    struct budget *budget;      /* pays for new blocks; NULL: new blocks are not charged */
    size_t charged;             /* bytes that the budget has paid for */
    bool failed;
};

enum { ARENA_DEFAULT_MAX = 64 * 1024 * 1024, ARENA_BLOCK = 4096 };

#define ARENA_INIT(limit) ((struct arena){.max = (limit)})

void arena_init(struct arena *a, size_t max);
void arena_release(struct arena *a);
void arena_reset(struct arena *a); /* empties the arena, but keeps one block for reuse */

/* Charges the arena's new blocks to the budget, until the arena is reset or released. When the
 * budget has too little left for an allocation, the arena fails. An arena has one budget at a
 * time. */
void arena_charge(struct arena *a, struct budget *budget);

/* Allocates memory that is zeroed and aligned for any type. Returns NULL past the limit. */
void *arena_alloc(struct arena *a, size_t size);
/* Like arena_alloc(), for count * size bytes. Returns NULL also when the product overflows. */
void *arena_array(struct arena *a, size_t count, size_t size);

#define arena_new(a, type) ((type *)arena_alloc((a), sizeof(type)))

/* These functions return a copy in the arena, followed by a NUL that is not counted in its length.
 * When the arena fails they return NULL or the empty str. */
char *arena_z(struct arena *a, struct str s);
struct str arena_str(struct arena *a, struct str s);
struct str arena_lower(struct arena *a, struct str s); /* ASCII capitals become lower case */
struct str arena_hex(struct arena *a, const void *bytes, size_t len); /* lower-case hex digits */
struct str arena_fmt(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Returns ERR_NO_MEMORY when an allocation failed since the last reset, else 0. */
int arena_error(const struct arena *a) MUST_CHECK;

#endif
