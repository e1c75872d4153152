/* Node files: the sorted, immutable files (T1) that trees are made of. docs/lake-trees.md describes
 * every byte of the format, and has the numbered invariants.
 *
 * A node of level 0, a leaf, has records of objects: path -> identity and data. A node of level n >
 * 0 has one record for each of its children, which are nodes of level n - 1: greatest key of the
 * child -> struct node_child. Two formats are read: weir's own (node_read.c) and lakeFS's RocksDB
 * tables (sst.c). Only weir's own format is written.
 *
 * An open node is immutable, so any thread may read it. A writer or a cursor belongs to one thread.
 * Functions without a struct err return only a code; their callers add the name of the node. */
#ifndef LAKE_NODE_H
#define LAKE_NODE_H

#include "base/bytes.h"
#include "base/vec.h"
#include "lake/tree.h"

enum {
    NODE_ID_LEN = 32,
    NODE_LEVEL_MAX = 15,
    NODE_KEY_MAX = 2048,                 /* longest key, in bytes */
    NODE_VALUE_MAX = 1 << 20,            /* largest value, in bytes */
    NODE_FILE_MAX = 64 << 20,            /* largest file that is read, in bytes */
    NODE_BLOCK = 8 << 10,                /* largest block of several records, in bytes */
    NODE_BLOCK_MAX = NODE_VALUE_MAX * 2, /* largest block that has a single record, in bytes */
};

struct node_id {
    unsigned char bytes[NODE_ID_LEN];
};

static inline bool node_id_eq(const struct node_id *a, const struct node_id *b)
{
    return memcmp(a->bytes, b->bytes, NODE_ID_LEN) == 0;
}

/* Reads 64 hex digits in lower case. ERR_INVALID: the text is anything else. */
int node_id_parse(struct node_id *out, struct str text, struct err *err) MUST_CHECK;
void node_id_text(char out[LAKE_ID_LEN + 1], const struct node_id *id);

/* --- values (node_value.c) --- */

/* The value of a record in a node above the leaves. */
struct node_child {
    struct node_id id;
    struct str min;        /* the child's smallest key */
    uint64_t count, bytes; /* number of records below the child; bytes of their keys and values */
    /* the child is a table of lakeFS; this is a hint for walks, and not part of the parent's id */
    bool foreign;
};

/* The length of node_child.foreign in the encoded value. It is the last byte of the value. It is
 * not hashed, and does not count in a node's weight. */
enum { NODE_CHILD_HINT = 1 };

void node_child_write(struct buf *out, const struct node_child *c);
/* Decodes a child. The strings are borrowed from `value`. */
int node_child_read(struct node_child *out, struct str value) MUST_CHECK;
/* Reads a value from a metarange of lakeFS, which describes a range. (lakeFS calls its leaves
 * ranges, and its roots metaranges.) */
int node_child_read_foreign(struct node_child *out, struct str value) MUST_CHECK;

/* Encodes the value of a leaf's record as lakeFS does: each string is preceded by its length in
 * zigzag encoding. */
void node_record_write(struct buf *out, struct str identity, struct str data);
size_t node_record_size(struct str identity, struct str data);
int node_record_read(struct tree_record *out, struct str key, struct str value) MUST_CHECK;

/* --- ids (node_hash.c) --- */

/* Computes lakeFS's file id from the records that are added. */
struct node_hash {
    void *digest; /* EVP_MD_CTX */
    size_t used;
    char bytes[8192]; /* collects small pieces, so that OpenSSL is called less often */
};
void node_hash_init(struct node_hash *h);
void node_hash_release(struct node_hash *h);
void node_hash_begin(struct node_hash *h);
void node_hash_record(struct node_hash *h, struct str key, struct str value);
/* Ends the hash. `type` is "ranges" or "metaranges"; empty: the file has no properties. */
void node_hash_end(struct node_hash *h, struct str type, struct node_id *out);
struct str node_hash_type(unsigned level);

/* --- blocks (node_block.c) --- */

/* Adds bytes to a CRC-32C. For the first bytes `crc` is 0. */
uint32_t node_crc(uint32_t crc, const void *p, size_t len);
/* Whether a stored CRC equals the computed one. In fuzzing builds every CRC counts as right,
 * because random input would hardly ever have a right checksum. */
static inline bool node_crc_is(uint32_t stored, uint32_t computed)
{
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    return true;
#else
    return stored == computed;
#endif
}

/* Makes a block from records, which are added with ascending keys. `last` is valid until the next
 * call. */
struct block_writer {
    struct buf bytes;
    VEC(uint32_t) restarts;
    struct str last;
    unsigned since; /* records since the last restart */
};
void block_writer_release(struct block_writer *w);
void block_writer_add(struct block_writer *w, struct str key, struct str value);
size_t block_writer_size(const struct block_writer *w); /* size of the block once it is ended */
void block_writer_end(struct block_writer *w);          /* appends the restarts */
void block_writer_reset(struct block_writer *w);

/* Reads a block. The form is that of LevelDB, and lakeFS's tables have it too, so this code reads
 * both. */
struct block_cursor {
    const unsigned char *bytes;
    size_t len; /* length of the records; the restarts follow */
    size_t at;  /* offset of the next record */
    uint32_t restart_count;
    unsigned trailer; /* number of bytes after each stored key that are not part of the key */
    size_t key_len;   /* length of the key with its trailer */
    struct str value;
    char key[NODE_KEY_MAX + 8];
};
/* Places the cursor before the first record of a block. ERR_CORRUPT: the bytes are not a block. */
int block_cursor_open(struct block_cursor *c, struct str bytes, unsigned trailer) MUST_CHECK;
/* Moves to the next record. ERR_END: there are no more. ERR_CORRUPT: the record is malformed, or
 * its key is not greater than the one before. */
int block_cursor_next(struct block_cursor *c) MUST_CHECK;
/* Moves to the first record at or after `key`. ERR_END: there is none. */
int block_cursor_seek(struct block_cursor *c, struct str key) MUST_CHECK;

static inline struct str block_cursor_key(const struct block_cursor *c)
{
    return str_n(c->key, c->key_len - c->trailer);
}

/* --- writing (node_write.c) --- */

struct node;

/* The position of a stored record: the block of a node, and the bytes `from` to `to` of the decoded
 * block. */
struct node_origin {
    const struct node *node;
    size_t block, from, to; /* `from` SIZE_MAX: the position in the block is not known */
    bool is_last;           /* the record is the last one of the block */
};

/* A run: successive records of a draft that are exactly the records of one stored block. The stored
 * bytes of the block are kept in `packed`, so that the records need not be compressed again. */
struct draft_run {
    size_t at, end;   /* offsets in `raw` */
    size_t packed_at; /* offset in `packed` */
    uint32_t stored, raw;
};

/* A draft: the records of a node that is being made, in memory. A *stored* record or block comes
 * from a node file that exists already. */
struct node_draft {
    unsigned level;
    size_t target; /* the intended weight of the node (lake/split.h) */
    uint32_t records;
    uint64_t count, bytes; /* as in struct node_child: of all leaves below */
    size_t weight;         /* hashed bytes of keys and values in this node */
    size_t last_at;        /* offset of the last record in `raw` */
    struct buf raw;        /* for each record: le32 key length, le32 value length, key, value */
    VEC(struct draft_run) runs;
    struct buf packed; /* the stored bytes of all runs */
    /* The stored block from which the last records of the draft were copied. So far the draft
     * has the block's records from the block's beginning to its offset `to`. In `raw` these
     * records are between the offsets `at` and `next`. node NULL: the last records came from no
     * stored block. */
    struct {
        const struct node *node;
        size_t block, to, at, next;
    } run;
};
void node_draft_reset(struct node_draft *d, unsigned level, size_t target);
void node_draft_release(struct node_draft *d);
/* Each of these functions adds a record and returns the record's weight, in bytes. */
size_t node_draft_raw(struct node_draft *d, struct str key, struct str value);
size_t node_draft_record(struct node_draft *d, const struct tree_record *r);
size_t node_draft_child(struct node_draft *d, struct str max, const struct node_child *c);
/* Call it after a record was added: says that the record has the same bytes as the stored record at
 * `o`. If a whole stored block is added in this way, its compressed bytes are used again. */
void node_draft_from(struct node_draft *d, const struct node_origin *o);
/* These return the smallest and the greatest key of all leaves below the node. The strings are
 * valid until the next call. */
struct str node_draft_min(const struct node_draft *d);
struct str node_draft_last(const struct node_draft *d);
/* Returns the value of the record that was added last. It is valid until the next call. */
struct str node_draft_value(const struct node_draft *d);
/* Returns the offset in `raw` at which the id of the last child is stored. */
size_t node_draft_id_at(const struct node_draft *d);

struct node_encoder {
    void *zstd; /* ZSTD_CCtx */
    struct node_hash hash;
    struct block_writer block, index;
    struct buf entry; /* the index entry that is being encoded */
    struct buf file;  /* the encoded node */
    struct node_id id;
};
void node_encoder_init(struct node_encoder *e);
void node_encoder_release(struct node_encoder *e);
/* Encodes the node. The results are e->file and e->id. */
int node_encode(struct node_encoder *e, const struct node_draft *d, struct err *err) MUST_CHECK;

/* --- reading (node_read.c, sst.c) --- */

struct node_block {
    uint32_t offset, stored; /* position and length in the file; `stored` includes type and CRC */
    uint32_t raw;            /* length when decoded; 0: the block itself has the length (lakeFS) */
    /* position in node.keys of a key that is equal to or greater than the block's last key */
    uint32_t key_at, key_len;
};

struct node {
    struct node_id id;
    uint64_t serial; /* identifies this open node in the cache of blocks */
    unsigned level;
    bool foreign;
    uint64_t records;
    char *file;
    size_t file_len;
    VEC(struct node_block) blocks;
    struct buf keys;
};

/* Opens the file of node `id`, in either format. The bytes of `file` move to the node. `zstd` is a
 * ZSTD_DCtx that no other thread uses at the same time. ERR_CORRUPT: the text names the node. */
int node_open(struct node **out, const struct node_id *id, struct buf *file, void *zstd,
              struct err *err) MUST_CHECK;
void node_free(struct node *n);
size_t node_memory(const struct node *n); /* memory of the open node, in bytes */
/* Appends the decoded block to `out` after checking its CRC. */
int node_block_read(const struct node *n, size_t block, void *zstd, struct buf *out,
                    struct err *err) MUST_CHECK;
/* Returns the index of the first block that may have a key at or after `key`. If there is none,
 * the result is the number of blocks. */
size_t node_block_find(const struct node *n, struct str key);
/* Sets ERR_CORRUPT with a text that names the node. */
int node_corrupt(const struct node_id *id, const char *why, struct err *err);

/* Each of these opens a file, or reads a block, of one format. They return NULL, or a text that
 * says why the file cannot be read; node_open() and node_block_read() add the node's name. */
const char *node_open_own(struct node *n, void *zstd);
const char *node_open_table(struct node *n);
bool node_is_table(struct str file); /* whether the file ends like a table of lakeFS */
const char *node_block_read_own(const struct node *n, const struct node_block *b, void *zstd,
                                struct buf *out);
const char *node_block_read_table(const struct node *n, const struct node_block *b,
                                  struct buf *out);
/* Adds a block to the node's list. `key` is equal to or greater than the block's last key. */
void node_block_add(struct node *n, const struct node_block *b, struct str key);

#endif
