/* Sets RocksDB's options: small, bounded memory, few threads, quick to open (docs/db.md,
 * "Settings"). */
#include "db/db_int.h"

#include "base/clock.h"

#include <stdlib.h>

enum {
    INFO_LOG_WARN = 2, /* the level "warn" of RocksDB's InfoLogLevel */
    BLOCK_BYTES = 8 * 1024,
    BLOOM_BITS = 10,
    MAX_OPEN_FILES = 256,
    BACKGROUND_JOBS = 2,
    /* RocksDB may use this many times memtable_bytes for memtables. The second half is headroom
     * (headroom.c). */
    WRITE_BUFFERS = 2,
    /* Each family with `skips` gets a cache of gaps (gaps.h) of 1/16 of the block cache's size. */
    GAPS_SHARE = 16,
};

/* The share of a write buffer that its Bloom filter gets. It amounts to 10 bits for a row of 64
 * bytes, because a memtable is filled only by half (headroom.c). */
static const double MEMTABLE_BLOOM = 0.01;
static const size_t default_cache_bytes = 64 * MIB;
static const size_t default_memtable_bytes = 16 * MIB;

/* The state of the filter that drops expired rows in one compaction. The clock is read once, when
 * the compaction begins. */
struct expiry {
    db_expired_fn *expired;
    int64_t now_wall_ms;
};

/* NOLINTNEXTLINE(readability-function-size): the parameters are RocksDB's */
static unsigned char expiry_filter(void *state, int level, const char *key, size_t key_len,
                                   const char *value, size_t value_len, char **new_value,
                                   size_t *new_value_len, unsigned char *value_changed)
{
    const struct expiry *e = state;
    return e->expired(str_n(key, key_len), str_n(value, value_len), e->now_wall_ms);
}

static const char *expiry_name(void *state)
{
    return "weir.expiry";
}

static rocksdb_compactionfilter_t *expiry_new(void *state,
                                              rocksdb_compactionfiltercontext_t *context)
{
    const struct db_cf *cf = state;
    struct expiry *e = xcalloc(1, sizeof(*e));

    e->expired = cf->expired;
    e->now_wall_ms = clock_wall_ms();
    return rocksdb_compactionfilter_create(e, free, expiry_filter, expiry_name);
}

static void nothing(void *state)
{
}

static void table_options(rocksdb_options_t *o, rocksdb_cache_t *cache)
{
    rocksdb_block_based_table_options_t *t = rocksdb_block_based_options_create();

    rocksdb_block_based_options_set_block_cache(t, cache);
    rocksdb_block_based_options_set_block_size(t, BLOCK_BYTES);
    rocksdb_block_based_options_set_format_version(t, 5);
    rocksdb_block_based_options_set_filter_policy(
        t, rocksdb_filterpolicy_create_bloom_full(BLOOM_BITS));
    rocksdb_block_based_options_set_data_block_index_type(
        t, rocksdb_block_based_table_data_block_index_type_binary_search_and_hash);
    /* Indexes and filters count against the cache too; otherwise their memory would grow with the
     * data. */
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(t, 1);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks_with_high_priority(t, 1);
    rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(t, 1);
    rocksdb_options_set_block_based_table_factory(o, t);
    rocksdb_block_based_options_destroy(t);
}

static void database_options(rocksdb_options_t *o, size_t memtable_bytes)
{
    rocksdb_options_set_create_if_missing(o, 1);
    rocksdb_options_set_create_missing_column_families(o, 1);
    rocksdb_options_set_wal_recovery_mode(o, rocksdb_point_in_time_recovery);
    rocksdb_options_set_db_write_buffer_size(o, WRITE_BUFFERS * memtable_bytes);
    /* headroom.c shrinks the logs earlier than this limit, at 4 times memtable_bytes. */
    rocksdb_options_set_max_total_wal_size(o, 6 * memtable_bytes);
    rocksdb_options_set_max_open_files(o, MAX_OPEN_FILES);
    rocksdb_options_set_max_background_jobs(o, BACKGROUND_JOBS);
    rocksdb_options_set_max_file_opening_threads(o, 1);
    rocksdb_options_set_skip_stats_update_on_db_open(o, 1);
    rocksdb_options_set_stats_dump_period_sec(o, 0);
    rocksdb_options_set_stats_persist_period_sec(o, 0);
    rocksdb_options_set_info_log_level(o, INFO_LOG_WARN);
    rocksdb_options_set_keep_log_file_num(o, 2);
    rocksdb_options_set_max_log_file_size(o, MIB);
    rocksdb_options_set_max_manifest_file_size(o, 16 * MIB);
    rocksdb_options_set_manifest_preallocation_size(o, 64 * KIB);
    rocksdb_options_set_bytes_per_sync(o, MIB);
}

static void family_options(rocksdb_options_t *o, size_t memtable_bytes)
{
    rocksdb_options_set_write_buffer_size(o, WRITE_BUFFERS * memtable_bytes / 2);
    rocksdb_options_set_max_write_buffer_number(o, 3);
    rocksdb_options_set_arena_block_size(o, 256 * KIB);
    /* Most keys that are looked up before they are written are new. For these the filter saves a
     * search in the memtable. */
    rocksdb_options_set_memtable_prefix_bloom_size_ratio(o, MEMTABLE_BLOOM);
    rocksdb_options_set_memtable_whole_key_filtering(o, 1);
    rocksdb_options_set_target_file_size_base(o, 16 * MIB);
    rocksdb_options_set_max_bytes_for_level_base(o, 64 * MIB);
    rocksdb_options_set_level_compaction_dynamic_level_bytes(o, 1);
    rocksdb_options_set_compression(o, rocksdb_lz4_compression);
}

/* Stops RocksDB from allocating disk space for its log in advance. RocksDB would allocate more than
 * the size of a write buffer, which may be the last space on a nearly full disk. The C interface
 * has no other way to turn this off. */
static void take_no_room_ahead(rocksdb_options_t **o)
{
    rocksdb_options_t *other = rocksdb_options_create();
    char *message = NULL;

    rocksdb_get_options_from_string(*o, "allow_fallocate=false", other, &message);
    rocksdb_options_destroy(message ? other : *o);
    if (!message)
        *o = other;
    rocksdb_free(message);
}

void options_build(struct db *db, const struct db_options *o)
{
    size_t memtable_bytes = o->memtable_bytes ? o->memtable_bytes : default_memtable_bytes;
    size_t cache_bytes = o->cache_bytes ? o->cache_bytes : default_cache_bytes;

    db->memtable_bytes = memtable_bytes;
    db->cache = rocksdb_cache_create_lru(cache_bytes);
    db->rows = rows_new(cache_bytes);
    db->options = rocksdb_options_create();
    database_options(db->options, memtable_bytes);
    family_options(db->options, memtable_bytes);
    table_options(db->options, db->cache);
    if (db->scarce)
        take_no_room_ahead(&db->options);
    for (size_t i = 0; i < db->cf_count; i++) {
        struct db_cf *cf = &db->cfs[i];
        cf->options = rocksdb_options_create_copy(db->options);
        if (cf->skips)
            cf->gaps = gaps_new(cache_bytes / GAPS_SHARE);
        if (cf->expired)
            rocksdb_options_set_compaction_filter_factory(
                cf->options,
                rocksdb_compactionfilterfactory_create(cf, nothing, expiry_new, expiry_name));
    }
}

void options_release(struct db *db)
{
    for (size_t i = 0; i < db->cf_count; i++)
        if (db->cfs[i].options)
            rocksdb_options_destroy(db->cfs[i].options);
    if (db->options)
        rocksdb_options_destroy(db->options);
    if (db->cache)
        rocksdb_cache_destroy(db->cache);
}

#ifdef __SANITIZE_THREAD__
/* Suppresses ThreadSanitizer's false reports about RocksDB. Debian's RocksDB is not built with
 * ThreadSanitizer, which sees RocksDB's plain accesses (through memcpy) but not the atomics that
 * order them. Races in weir's own code have no RocksDB function on their stacks and are still
 * reported. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:librocksdb.so\nrace:libstdc++.so\n";
}
#endif
