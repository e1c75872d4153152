/* Declarations that the files of the local storage share. Invariants such as L9 are numbered in
 * docs/local-storage.md. */
#ifndef OBJECT_LOCAL_LOCAL_INT_H
#define OBJECT_LOCAL_LOCAL_INT_H

#include "base/hash.h"
#include "base/map.h"
#include "base/hex.h"
#include "base/vec.h"
#include "object/generation.h"
#include "object/hasher.h"
#include "object/local/local.h"
#include "object/local/local_record.h"
#include "os/thread.h"

enum {
    IDENTITY_LEN = 16,
    UPLOAD_ID_LEN = 16,
    UPLOAD_ID_TEXT = 2 * UPLOAD_ID_LEN,
    VERSION_ID_TEXT = 32,
    BUCKET_NAME_MAX = 255,
    OWNER_MAX = 512,
    DOCUMENT_NAME_MAX = 64,
    /* A file's checksum is computed block by block. So this size never changes. */
    BLOB_BLOCK = 256 * 1024,
    EPOCH_BITS = 24,
    /* Bits of the counter in a blob id. The highest one is set for rows of family "bytes". */
    COUNTER_BITS = 40,
    BLOB_FOLDER_BITS = 12, /* log2 of the number of files in a folder of blobs */
    BLOB_ETAG_MAX = 36,
};

/* The readers of objects made of parts. The collector must not remove the blobs that they have
 * pinned (docs/local-storage.md, L9). */
struct pins {
    struct mutex lock; /* lock class "local.pins" */
    struct cond resolved;
    struct list readers; /* list of struct pin, in the order of registration */
    uint64_t registered; /* number of pins made since the start */
    bool skipped;        /* the collector has skipped a blob because it was pinned */
};

struct pin {
    struct list node;
    uint64_t number;
    bool resolving;  /* the row that names the reader's blobs is being read */
    uint64_t *blobs; /* ids in ascending order; owned */
    size_t count;
};

struct collector {
    struct mutex lock; /* lock class "local.collector" */
    struct cond wake, finished;
    uint64_t asked, done; /* number of rounds asked for, and number of rounds done */
    unsigned holds;       /* backups under way; while there are any, no round begins */
    bool running;
    bool stop;
    bool given_up;          /* a missing folder is no longer looked for */
    VEC(uint64_t) doubtful; /* blobs whose commit failed; their rows may come back */
    struct thread thread;
};

/* Which buckets were fenced, and when (local_fence.c). Numbers count the fences of the storage. */
struct fences {
    _Atomic(uint32_t) number;
    struct mutex lock; /* lock class "local.fences"; guards the map */
    struct map names;  /* maps the name of a bucket to its struct fenced */
};

/* A failure of the disk. It is set when a file could not be written or synced, and reset when a
 * file could be written again. */
struct trouble {
    struct mutex lock; /* lock class "local.trouble" */
    bool set;
    struct err why;
};

enum { ROW_PREFIX_LEN = 5, ROW_BUCKET_LEN = 13, ROW_VERSION_TAIL = 9, ROW_UPLOAD_TAIL = 17 };

struct local {
    struct storage storage;
    struct db *db;
    struct db_cf *rows, *bytes, *outbox, *changes;
    _Atomic(const struct change_tap *) tap; /* NULL: the storage has no tap */
    char *name, *folder;
    int lock_fd;           /* locks the folder while the storage is open */
    _Atomic(bool) present; /* the folder was found and is in use; once true, stays true */
    const struct log *log;
    uint32_t id, epoch;
    char sequence_row[ROW_PREFIX_LEN]; /* key of the row of TAG_SEQUENCE */
    size_t inline_max;
    uint64_t reserve_bytes, part_min;
    unsigned char identity[IDENTITY_LEN];
    bool identified; /* `identity` is known from the storage's row, and no longer changes */
    struct hash_key version_key;
    /* The last sequence number given out. It is used only inside changes, so by one thread at a
     * time. */
    uint64_t sequence;
    _Atomic(uint64_t) next_file, next_bytes; /* counters of blob ids */
    _Atomic(uint64_t) blob_folders_synced; /* folders of this epoch below this number are durable */
    _Atomic(bool) leaked; /* a file of this epoch may have no row, so the epoch stays open */
    _Atomic(uint64_t) list_steps, collected, swept;
    /* The generation numbers of buckets (docs/local-storage.md, L10). The lowest 16 bits of each
     * count the changes under way. */
    struct generations generations;
    struct fences fences;
    struct hasher *hasher;
    struct pins pins;
    struct collector collector;
    struct trouble trouble;
};

struct local_bucket {
    struct bucket bucket;
    struct local *local;
    uint64_t id;
    _Atomic(uint32_t) fence; /* number of the storage's newest fence when the bucket was opened */
    /* Changes are reported to taps as changes of this bucket, and the ids of versions are computed
     * with its number. A bucket that is no shard is its own logical bucket. */
    struct logical logical;
    struct str row;                 /* key of the row of TAG_BUCKET; it ends with the name */
    char usage_row[ROW_BUCKET_LEN]; /* key of the row that has struct bucket_usage */
    bool untapped;                  /* its changes are hidden from the tap (local_untap()) */
    _Atomic(unsigned) refs;
    char memory[]; /* holds the bytes of `row`, and of the name of the logical bucket */
};

extern const struct storage_ops local_storage_ops;
extern const struct bucket_ops local_bucket_ops;

static inline struct local *local_of(struct storage *s)
{
    BUG_ON(s->ops != &local_storage_ops);
    return container_of(s, struct local, storage);
}

static inline bool bucket_is_shard(const struct local_bucket *b)
{
    return b->logical.id != b->id;
}

static inline struct local_bucket *local_bucket_of(struct bucket *b)
{
    BUG_ON(b->ops != &local_bucket_ops);
    return container_of(b, struct local_bucket, bucket);
}

/* Checks that the storage's folder is in use. ERR_OFFLINE: the folder is missing. */
int local_present(const struct local *l, struct err *err) MUST_CHECK;

/* --- local_trouble.c --- */

void trouble_note(struct local *l, const struct err *err);
int trouble_try(struct local *l, struct err *err) MUST_CHECK;

/* --- local_folder.c --- */

/* Checks and locks the folder, and begins an epoch. *missing true: the call failed because of the
 * disk, and a later call may succeed. */
int folder_enter(struct local *l, bool *missing, struct err *err) MUST_CHECK;
/* Checks that the folder is the one that the rows belong to. If its disk is not mounted, there is
 * an empty folder in its place. */
int folder_check(const struct local *l, struct err *err) MUST_CHECK;
/* Marks the rows as those of a storage with shards, which an older weir does not open. */
void folder_note_shards(struct local *l, struct db_tx *tx);

/* --- local_rows.c: keys of rows, ids --- */

enum tag {
    TAG_STORAGE = 's',
    TAG_SEQUENCE = 'q',
    TAG_EPOCH = 'e',
    TAG_OPEN_EPOCH = 'E',
    TAG_BUCKET = 'b',
    TAG_OWNED = 'w',
    TAG_USAGE = 'c',
    TAG_DOCUMENT = 'd',
    TAG_OBJECT = 'o',
    TAG_VERSION = 'v',
    TAG_NULL = 'n',
    TAG_UPLOAD = 'u',
    TAG_PART = 'p',
    TAG_FINISHED = 'f',
    TAG_BLOB = 'B',
    TAG_GARBAGE = 'g',
};

/* Memory for the key of a row; the functions below return strings that point into it. */
struct row {
    char bytes[ROW_BUCKET_LEN + OBJECT_KEY_MAX + ROW_UPLOAD_TAIL];
    size_t len;
};

static inline struct str row_str(const struct row *r)
{
    return str_n(r->bytes, r->len);
}

struct str row_tag(struct row *r, const struct local *l, enum tag tag);
struct str row_name(struct row *r, const struct local *l, enum tag tag, struct str name);
struct str row_owned(struct row *r, const struct local *l, struct str owner, struct str bucket);
struct str row_id(struct row *r, const struct local *l, enum tag tag, uint64_t id);
struct str row_bytes(struct row *r, const struct local *l, uint64_t id); /* in family "bytes" */
struct str row_key(struct row *r, const struct local_bucket *b, enum tag tag, struct str key);
struct str row_version(struct row *r, const struct local_bucket *b, struct str key,
                       uint64_t sequence);
/* Returns the prefix that the rows of all versions of the key have. */
struct str row_versions(struct row *r, const struct local_bucket *b, struct str key);
struct str row_upload(struct row *r, const struct local_bucket *b, struct str key,
                      const unsigned char id[UPLOAD_ID_LEN]);
struct str row_part(struct row *r, const struct local *l, const unsigned char id[UPLOAD_ID_LEN],
                    uint32_t number);
uint64_t row_u64(struct str bytes); /* reads the first 8 bytes, big-endian */

/* Returns "null" or the version's id, in the arena. */
struct str version_text(const struct local_bucket *b, struct arena *a, struct str key,
                        const struct object_record *r);
struct str version_id(const struct local_bucket *b, struct arena *a, struct str key,
                      uint64_t sequence);
/* Reads the sequence number from a version's id. False: this storage gave no version of this key
 * such an id. */
bool version_parse(const struct local_bucket *b, struct str key, struct str text,
                   uint64_t *sequence);

/* Checks the key of an object. ERR_INVALID: it is empty, too long, or has a NUL byte. */
int key_check(struct str key, struct err *err) MUST_CHECK;

/* --- local_fence.c: buckets that were opened before they became part of a larger bucket --- */

void fences_init(struct fences *f);
void fences_release(struct fences *f);
/* ERR_BUSY: the bucket was fenced after it was opened through this reference. */
int fence_check(struct local_bucket *b, struct err *err) MUST_CHECK;
/* Does the same for a read that has ended with `code`, and returns `code` if the bucket was not
 * fenced. */
int fence_checked(struct local_bucket *b, int code, struct err *err);

/* --- local_version.c: where each version is stored, and changes of versions --- */

/* A record, and the row that it points into. */
struct stored {
    struct buf row;
    struct object_record r;
};

void stored_release(struct stored *s);

/* Reads the record in the row with this key. ERR_NOT_FOUND: there is no such row. */
int stored_get(struct stored *out, struct db_view *view, struct local *l, struct str row,
               struct err *err) MUST_CHECK;
/* Finds the named version, among the rows of TAG_OBJECT and TAG_VERSION. `version` must not be
 * empty. ERR_NOT_FOUND: there is no such version. */
int stored_find(struct stored *out, struct db_view *view, struct local_bucket *b, struct str key,
                struct str version, struct err *err) MUST_CHECK;
/* Finds the newest of the key's rows of TAG_VERSION. ERR_NOT_FOUND: there is none. */
int stored_newest(struct stored *out, struct db_view *view, struct local_bucket *b, struct str key,
                  struct err *err) MUST_CHECK;
/* Appends the list of parts, from the record or, for a long list, from a row of its own. ERR_AGAIN:
 * that row was removed. */
int stored_parts(struct buf *out, struct db_view *view, struct local *l,
                 const struct object_record *r, struct err *err) MUST_CHECK;

/* A change of one bucket's rows. The caller embeds it as the first member, sets `fn`, and calls
 * change_apply(). */
struct row_change {
    struct local_bucket *b;
    struct str key;    /* empty: the bucket itself is changed */
    struct row row;    /* database key of the object's row of TAG_OBJECT; set by change_key() */
    enum meta_set set; /* the fields of the meta that the change sets */
    /* The change makes room, so it is allowed on a full disk (docs/local-storage.md, P7). */
    bool frees;
    /* The change need not be durable on return. It becomes durable with the next durable change; a
     * crash of the machine before that may lose it. */
    bool later;
    /* The conditions of a write. They are judged before fn is called, against `current`. NULL: fn
     * itself reads the current version, and judges. */
    const struct object_conditions *conditions;
    int (*fn)(struct row_change *c, struct err *err);
    /* The members from here to `tapped` are valid while fn runs. */
    struct db_tx *tx;
    struct db_view *view;
    struct buf bucket_row;
    struct bucket_record bucket;
    struct stored current; /* the current version, as change_current() reads it */
    /* The change of the bucket's usage, modulo 2^64 (docs/local-storage.md, L11). */
    struct bucket_usage counted;
    /* Number of the row that the tap keeps (docs/local-storage.md, L12); 0: it keeps none. */
    uint64_t tapped;
    /* The members below are valid after change_apply(). */
    bool refused; /* fn failed, so it is certain that nothing was committed */
    bool garbage; /* some blobs have lost their last reference */
};

/* Checks the change's key, and sets the key of its row. ERR_INVALID as for key_check(). */
int change_key(struct row_change *c, struct err *err) MUST_CHECK;
int change_apply(struct row_change *c, struct err *err) MUST_CHECK;
/* Applies several changes in one commit: all of them or none. The n-th change is at `first` + n *
 * `size` bytes. */
int change_apply_all(struct row_change *first, size_t size, size_t count,
                     struct err *err) MUST_CHECK;
/* Ends a change whose commit ended with `code`, and tells the tap of a row that was committed.
 * change_apply() and change_apply_all() do this themselves. */
void change_end(struct row_change *c, int code);
/* Reads the current version. If the current version is a marker, or there is no version, the record
 * is empty and its sequence is 0. */
int change_current(struct row_change *c, struct stored *out, struct err *err) MUST_CHECK;
int change_sequence(struct row_change *c, uint64_t *out, struct err *err) MUST_CHECK;
/* Makes `r` the current version in place of `current`: sets its sequence, time and null flag, and
 * writes its row. The old current version is kept if the bucket keeps versions, else dropped. A
 * marker gets a row of TAG_VERSION, not of TAG_OBJECT. */
int change_install(struct row_change *c, const struct stored *current, struct object_record *r,
                   struct err *err) MUST_CHECK;
/* Drops a version's row and its references to bytes. `in_o`: the row has TAG_OBJECT, not
 * TAG_VERSION. `bypass`: governance retention is ignored. ERR_DENIED: the version is locked. */
int change_drop(struct row_change *c, const struct object_record *r, bool in_o, bool bypass,
                struct err *err) MUST_CHECK;
/* After the current version was dropped, makes the newest older version current, unless that is a
 * marker. */
int change_promote(struct row_change *c, struct err *err) MUST_CHECK;
/* Adds a reference to the blob; the next function removes one (docs/local-storage.md, L6). */
int change_ref(struct row_change *c, uint64_t blob, struct err *err) MUST_CHECK;
int change_unref(struct row_change *c, uint64_t blob, struct err *err) MUST_CHECK;
/* Shares the record's bytes: adds a reference to each of its blobs. An inline body, or a list of
 * parts in a row of its own, is copied under a new id, which `r` gets. */
int change_share(struct row_change *c, struct object_record *r, struct err *err) MUST_CHECK;
int change_free(struct row_change *c, const struct object_record *r, struct err *err) MUST_CHECK;

/* --- local_tap.c: reports of a change, and the log of changes (docs/local-storage.md, L12) --- */

/* Reports to the tap, and to `note` (may be NULL), what happened to the version. `changes` is a set
 * of enum thing_kind. Rows that the tap and `note` keep are part of this change. */
int change_tell(struct row_change *c, const struct change_note *note, unsigned changes,
                const struct object_record *r, struct err *err) MUST_CHECK;
/* Writes a row about the change if the tap wants it. `sequence` is the row's number; 0: a new
 * number. `r` is the version that was changed; NULL: the bucket itself was changed. */
int change_keep(struct row_change *c, struct tapped *t, const struct object_record *r,
                uint64_t sequence, struct err *err) MUST_CHECK;
void local_bucket_untap(struct bucket *b);

/* --- local_usage.c: counts (docs/local-storage.md, L11) --- */

/* Writes the changed counts to the bucket's usage row. This is the last step of a change. */
int change_count_end(struct row_change *c, struct err *err) MUST_CHECK;
int local_usage(struct bucket *b, struct bucket_usage *out, struct err *err);
int usage_get(struct local_bucket *b, struct db_view *view, struct bucket_usage *out,
              struct err *err) MUST_CHECK;
/* Counts the usage of every bucket, and writes the rows of owners (docs/local-storage.md, L13). The
 * counts become durable with the next durable change. Nothing else may be written meanwhile. */
int usage_build(struct local *l, struct err *err) MUST_CHECK;
/* Compares the bucket's counts with its rows, and corrects them. Writes may go on meanwhile. */
int usage_mend(struct local_bucket *b, bool *was_wrong, struct err *err) MUST_CHECK;

/* --- local_blob.c: files --- */

struct blob {
    uint64_t id;                /* 0: no file was made */
    uint64_t bytes_id;          /* id for the row of a body in *small; 0: there is no such body */
    uint64_t size, checksum;    /* size in bytes and checksum of the stored bytes */
    uint64_t plain;             /* bytes of the body; equals `size` unless the body is sealed */
    unsigned char md5[MD5_LEN]; /* MD5 of the body, if asked for */
    char etag[BLOB_ETAG_MAX]; /* the MD5 in hex, or a hidden ETag (put_seal.hide_md5); empty if not
                                 asked for */
    int fd;                   /* the open file if blob_sync_file() has to be called, else -1 */
};

void blob_path(struct buf *out, const struct local *l, uint64_t id);
uint64_t blob_bytes_id(struct local *l); /* makes a new id for a row of family "bytes" */

/* A body for blob_write() to store. A body of up to `inline_max` bytes is returned in *small, with
 * out->id 0. A longer body becomes a file, which is durable on return. */
struct blob_source {
    struct reader *body;
    uint64_t size;     /* size of the body in bytes; UINT64_MAX: not known */
    size_t inline_max; /* 0: any body becomes a file */
    bool md5;
    bool later; /* the caller makes the file durable, by blob_sync_file() */
};
int blob_write(struct local *l, const struct blob_source *from, struct blob *out, struct buf *small,
               struct err *err) MUST_CHECK;
/* The destination of blob_take(). That function stores a body as blob_write() does, but seals the
 * bytes if `meta` has an encryption. `meta` will be kept with the bytes. */
struct blob_target {
    const struct put_options *o;
    const struct object_meta *meta;
    uint32_t part; /* number of the part; 0: a whole object */
};
int blob_take(struct local *l, const struct blob_source *from, const struct blob_target *to,
              struct blob *out, struct buf *small, struct err *err) MUST_CHECK;
/* blob_sync_file() makes a file durable that was written with `later`, and closes it.
 * blob_sync_folder() then makes the file's entry in its folder durable. */
int blob_sync_file(struct local *l, struct blob *blob, struct err *err) MUST_CHECK;
int blob_sync_folder(struct local *l, uint64_t id, struct err *err) MUST_CHECK;
/* Whether the files of two blobs are in one folder. */
bool blob_is_beside(uint64_t id, uint64_t other);
/* Removes a file that no committed row can name. */
void blob_discard(struct local *l, uint64_t id);
/* After a failed change: removes the blob if the change was refused. If its commit failed, the
 * collector finds out whether a row names the blob. id 0 is fine. */
void blob_unused(struct local *l, const struct row_change *c, uint64_t id);
/* Opens the blob's file. ERR_NOT_FOUND: there is no such file. */
int blob_open(int *fd, const struct local *l, uint64_t id, struct err *err) MUST_CHECK;
/* Continues a file's checksum with the next block. */
uint64_t blob_checksum(uint64_t sum, struct str block);
int blob_space(struct local *l, uint64_t need, struct err *err) MUST_CHECK;
/* Reads a body to its end and adds its bytes to the digests. */
int blob_digest(struct reader *from, struct digests *d, struct err *err) MUST_CHECK;

/* --- local_reader.c: bodies --- */

/* Opens range[1] bytes of the record's body, beginning at the offset range[0]. ERR_AGAIN: the bytes
 * were removed, and the caller must read the row again. An object of parts needs a pin, which the
 * reader takes over. */
int body_open(struct reader **out, struct local *l, struct arena *a, const struct object_record *r,
              const uint64_t range[2], struct pin **pin, struct err *err) MUST_CHECK;
/* Pins the blobs of this list of parts (docs/local-storage.md, L9). */
int pin_resolve(struct local *l, struct pin *pin, struct str list, struct err *err) MUST_CHECK;
struct pin *pin_begin(struct local *l);
void pin_end(struct local *l, struct pin *pin); /* `pin` may be NULL */

/* --- local_sealed.c: bodies under a key --- */

/* Like blob_write(), but seals the bytes. */
int blob_seal(struct local *l, const struct blob_source *from, const struct blob_target *to,
              struct blob *out, struct buf *small, struct err *err) MUST_CHECK;

/* Like body_open(), but for a record with an encryption. */
int sealed_body_open(struct reader **out, struct local *l, struct arena *a,
                     const struct object_record *r, const uint64_t range[2], struct pin **pin,
                     struct err *err) MUST_CHECK;
int sealed_body_unlock(struct reader *body, const struct sealed_key *key, struct err *err);

/* --- local_get.c --- */

int local_head(struct bucket *b, struct arena *a, struct str key, struct str version,
               const struct object_conditions *c, struct get_result *out, struct err *err);
int local_get(struct bucket *b, struct arena *a, struct str key, struct str version,
              const struct object_conditions *c, const struct object_range *range,
              struct get_result *out, struct err *err);

/* --- local_put.c --- */

int local_put(struct bucket *b, struct arena *a, struct str key, struct reader *body, uint64_t size,
              const struct put_options *o, struct put_result *out, struct err *err);
int local_copy(struct bucket *b, struct arena *a, struct str key, struct bucket *from,
               const struct object_info *source, const struct put_options *o,
               struct put_result *out, struct err *err);
int local_put_all(struct bucket *b, struct arena *a, struct object_put *puts, size_t count,
                  struct err *err);
/* Fills the result of a put that installed this record. */
int put_answer(const struct row_change *c, struct arena *a, const struct object_record *r,
               struct put_result *out, struct err *err);

/* --- local_remove.c --- */

int local_remove(struct bucket *b, struct arena *a, struct str key, const struct remove_options *o,
                 struct remove_result *out, struct err *err);
int local_set_meta(struct bucket *b, struct arena *a, struct str key, struct str version,
                   enum meta_set set, const struct object_meta *meta, const struct meta_options *o,
                   struct err *err);

/* --- local_list.c --- */

int local_list(struct bucket *b, struct arena *a, const struct list_options *o,
               struct list_result *out, struct err *err);
int local_list_versions(struct bucket *b, struct arena *a, const struct list_options *o,
                        struct list_result *out, struct err *err);
/* Returns the common prefix of `key`: its beginning, up to and including the first delimiter after
 * o->prefix. Empty: the key has no such delimiter. */
struct str list_common(struct str key, const struct list_options *o);
/* Appends the key of the first row that a listing may have to return. */
void list_start(struct buf *out, const struct local_bucket *b, enum tag tag,
                const struct list_options *o);

/* --- local_keys.c: all rows of each key --- */

enum { KEY_WALKS = 4 };

/* The keys above `after`, up to and including `upto`. An empty `upto`: there is no upper end. */
struct key_window {
    struct str after, upto;
    bool with_after; /* the key `after` is in the window too */
};

/* A walk over the rows of a window under one tag. */
struct key_walk {
    struct db_iter *it;
    size_t tail; /* number of bytes after the object's key in the key of a row */
    struct buf start, end;
    bool there;            /* there is a next row, which the members below describe */
    struct str row, value; /* its key and value */
    struct str key;        /* the object's key; points into `row` */
};

/* The walks under all tags that a key may have rows of, merged by the keys. */
struct keys {
    struct key_walk walks[KEY_WALKS];
};

/* Begins at the window's first key. The rows are those of the view at this moment. keys_close()
 * must be called also after a failure. */
int keys_open(struct keys *k, struct db_view *view, const struct local_bucket *b,
              const struct key_window *window, struct err *err) MUST_CHECK;
void keys_close(struct keys *k);
/* Sets *key to the next key (valid until keys_take()). False: there are no more keys. */
bool keys_peek(const struct keys *k, struct str *key);
/* Calls fn (NULL: no function) with every row of the key that keys_peek() has returned, and goes to
 * the next key. `key` is the caller's copy. When fn returns an error, keys_take() returns it at
 * once, and nothing but keys_close() may follow. */
typedef int key_row_fn(void *ctx, enum tag tag, struct str row, struct str value, struct err *err);
int keys_take(struct keys *k, struct str key, key_row_fn *fn, void *ctx,
              struct err *err) MUST_CHECK;

/* --- local_upload.c, local_finish.c, local_upload_list.c --- */

struct kept_parts {
    const struct upload_part *parts; /* sorted by number */
    size_t count;
};

/* Appends the upload's row to `value`. ERR_NOT_FOUND: there is no such upload. */
int upload_there(struct row_change *c, const unsigned char id[UPLOAD_ID_LEN], struct buf *value,
                 struct err *err) MUST_CHECK;
/* Deletes the rows of all parts of the upload. Also removes the references to blobs that the parts
 * have, except those of the parts in `kept` (may be NULL). */
int upload_drop_parts(struct row_change *c, const unsigned char id[UPLOAD_ID_LEN],
                      const struct kept_parts *kept, struct err *err) MUST_CHECK;
bool local_row_expired(struct str key, struct str value, int64_t now_wall_ms);

int local_upload_begin(struct bucket *b, struct arena *a, struct str key,
                       const struct object_meta *meta, struct str *id, struct err *err);
int local_upload_part(struct bucket *b, struct arena *a, const struct upload_info *upload,
                      uint32_t number, struct reader *body, uint64_t size,
                      const struct put_options *o, struct upload_part *out, struct err *err);
int local_upload_part_copy(struct bucket *b, struct arena *a, const struct upload_info *upload,
                           uint32_t number, struct bucket *from, const struct object_info *source,
                           const struct object_range *range, struct upload_part *out,
                           struct err *err);
int local_upload_finish(struct bucket *b, struct arena *a, const struct upload_info *upload,
                        const struct upload_part *parts, size_t count, const struct put_options *o,
                        struct put_result *out, struct err *err);
int local_upload_abort(struct bucket *b, const struct upload_info *upload, struct err *err);
int local_list_parts(struct bucket *b, struct arena *a, const struct upload_info *upload,
                     uint32_t after, size_t limit, struct part_list *out, struct err *err);
int local_object_parts(struct bucket *b, struct arena *a, const struct object_info *object,
                       uint32_t after, size_t limit, struct part_list *out, struct err *err);
int local_list_uploads(struct bucket *b, struct arena *a, const struct list_options *o,
                       struct upload_list *out, struct err *err);
/* Reads an upload's id. ERR_NOT_FOUND: the text cannot be an id. */
int upload_id_parse(struct str text, unsigned char id[UPLOAD_ID_LEN], struct err *err) MUST_CHECK;
/* Sets out[0] and out[1] to offset and length of a range in an object of this size. ERR_RANGE: the
 * range is not in the object. */
int range_resolve(const struct object_range *range, uint64_t size, uint64_t out[2],
                  struct err *err) MUST_CHECK;

/* --- local_bucket.c --- */

/* Fills the members that are taken from the bucket's record and from the key of its row. That key,
 * and the name of the logical bucket, are borrowed. */
void local_bucket_init(struct local_bucket *b, struct local *l, struct str row,
                       const struct bucket_record *r);
/* Reads the bucket's row as it is now. ERR_NO_BUCKET: the bucket was removed, or another bucket has
 * its name. */
int bucket_row_get(struct local_bucket *b, struct db_view *view, struct buf *row,
                   struct bucket_record *out, struct err *err) MUST_CHECK;
int local_bucket_info(struct bucket *b, struct arena *a, struct bucket_info *out, struct err *err);
int local_get_document(struct bucket *b, struct arena *a, const char *name, struct str *out,
                       struct err *err);
int local_set_document(struct bucket *b, const char *name, struct str document, struct err *err);
int local_set_versions(struct bucket *b, bool on, struct err *err);
int local_set_object_lock(struct bucket *b, struct err *err);
int local_create_bucket(struct storage *s, const struct bucket_info *info, struct err *err);
int local_remove_bucket(struct storage *s, struct str user, struct str name, struct err *err);
int local_open_bucket(struct bucket **out, struct storage *s, struct str user, struct str name,
                      struct err *err);
int local_list_buckets(struct storage *s, struct arena *a, struct str owner, struct str after,
                       size_t limit, struct bucket_info **out, size_t *count, struct err *err);
struct bucket *local_bucket_ref(struct bucket *b);
void local_bucket_unref(struct bucket *b);

/* Makes a bucket, or a shard if `logical` is not NULL, without telling the tap if `untapped`. */
int bucket_make(struct local *l, const struct bucket_info *info, struct local_bucket *logical,
                bool untapped, struct err *err) MUST_CHECK;
/* Removes the bucket, and releases the caller's reference to it. */
int bucket_remove_opened(struct bucket *b, struct err *err) MUST_CHECK;

/* --- local_collect.c --- */

int collector_start(struct local *l, struct err *err) MUST_CHECK;
void collector_stop(struct local *l);
void collector_ask(struct local *l); /* asks for a round because there is garbage */
/* Whether the epoch may have files without a row that are still being written, or will be swept
 * later. */
bool epoch_is_open(struct local *l, uint32_t epoch);
/* Calls fn for every file of an epoch under blobs/. `id` is 0 for a file name that is not a blob's.
 */
typedef int blob_file_fn(void *ctx, uint64_t id, const char *path, struct err *err);
int epoch_each_file(struct local *l, uint32_t epoch, blob_file_fn *fn, void *ctx, struct err *err);

#endif
