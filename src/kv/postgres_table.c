/* Computes which of the hundred tables has a partition's rows. The hash is PostgreSQL's own hash
 * for hash partitions.
 *
 * The server could find the table by itself, but then it plans every statement for a hundred
 * tables, which takes as long as running the statement. The hash is part of the format of a
 * partitioned table, so it is the same in all versions. When weir opens the store, it compares this
 * hash with the server's own (SQL_LAYOUT). If they differ, statements name the parent table, and
 * the server finds the table. */
#include "base/bytes.h"
#include "kv/postgres_int.h"

/* The seed of all hash partitions, and the number that is added when hashes of columns are
 * combined. */
#define PARTITION_SEED UINT64_C(0x7a5b22367996dcfd)
#define COMBINE_ADD    UINT64_C(0x49a0f4dd15e5a8e3)

static uint32_t rotate(uint32_t v, unsigned by)
{
    return v << by | v >> (32 - by);
}

/* The hash is Bob Jenkins's "lookup3" of 2006, with a seed and a result of 64 bits. */
struct lookup3 {
    uint32_t a, b, c;
};

static void mix_step(uint32_t *x, uint32_t y, uint32_t *z, unsigned by)
{
    *x = (*x - *z) ^ rotate(*z, by);
    *z += y;
}

static void lookup3_mix(struct lookup3 *h)
{
    mix_step(&h->a, h->b, &h->c, 4);
    mix_step(&h->b, h->c, &h->a, 6);
    mix_step(&h->c, h->a, &h->b, 8);
    mix_step(&h->a, h->b, &h->c, 16);
    mix_step(&h->b, h->c, &h->a, 19);
    mix_step(&h->c, h->a, &h->b, 4);
}

static void end_step(uint32_t *x, uint32_t y, unsigned by)
{
    *x = (*x ^ y) - rotate(y, by);
}

static uint64_t lookup3_end(struct lookup3 *h)
{
    end_step(&h->c, h->b, 14);
    end_step(&h->a, h->c, 11);
    end_step(&h->b, h->a, 25);
    end_step(&h->c, h->b, 16);
    end_step(&h->a, h->c, 4);
    end_step(&h->b, h->a, 14);
    end_step(&h->c, h->b, 24);
    return (uint64_t)h->b << 32 | h->c;
}

static uint64_t lookup3(struct str bytes, uint64_t seed)
{
    uint32_t start = UINT32_C(0x9e3779b9) + (uint32_t)bytes.len + 3923095;
    struct lookup3 h = {start + (uint32_t)(seed >> 32), start + (uint32_t)seed, start};
    char tail[12] = {0};

    lookup3_mix(&h);
    for (; bytes.len >= 12; bytes = str_skip(bytes, 12)) {
        h.a += le32_read(bytes.p);
        h.b += le32_read(bytes.p + 4);
        h.c += le32_read(bytes.p + 8);
        lookup3_mix(&h);
    }
    if (bytes.len > 0)
        memcpy(tail, bytes.p, bytes.len);
    h.a += le32_read(tail);
    h.b += le32_read(tail + 4);
    h.c += le32_read(tail + 8) << 8; /* the lowest byte is kept for the length */
    return lookup3_end(&h);
}

unsigned sql_table_of(struct str partition)
{
    return (unsigned)((lookup3(partition, PARTITION_SEED) + COMBINE_ADD) % SQL_TABLE_COUNT);
}
