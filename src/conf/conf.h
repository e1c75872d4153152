/* The configuration: an immutable snapshot that has the value of every key, and the origin of each
 * value. docs/config.md, which is generated from the table in keys.c, lists the keys.
 *
 * Values come from four layers, each of which overrides the one before: built-in defaults, the YAML
 * file, the environment, flags. Every wrong value is reported as a problem, one line each; if there
 * is a problem, no snapshot is made. A snapshot never changes, so any thread may read a snapshot to
 * which it has a reference. A reload makes a new snapshot, in which keys that cannot change while
 * weir runs keep their old values. */
#ifndef CONF_CONF_H
#define CONF_CONF_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"

#include <stdatomic.h>

struct conf_key;
struct conf_origin;

enum conf_engine { CONF_ENGINE_EMBEDDED, CONF_ENGINE_REDIS };
enum conf_kv_engine { CONF_KV_AUTO, CONF_KV_EMBEDDED, CONF_KV_REDIS, CONF_KV_POSTGRES };
enum conf_tracker_mode { CONF_TRACKER_PUBLIC, CONF_TRACKER_PRIVATE };
enum conf_archive_check { CONF_ARCHIVE_WALK, CONF_ARCHIVE_HASH };
enum conf_tracker_share { CONF_SHARE_AUTO, CONF_SHARE_ON, CONF_SHARE_OFF };

struct conf_tls {
    const char *cert, *key; /* paths of files; both "" or both given */
};

/* The next four structs are the remote storages, forges and users that the file lists
 * (docs/config.md).
 * `line` is the number of the line where the entry's first value stands in the file. `given` has a
 * bit for each field that the file sets; only conf/ uses it. */
struct conf_credential {
    const char *user; /* name of the user to whom the keys on the storage belong */
    const char *access_key, *secret_key;
    size_t line;
    unsigned given;
};

struct conf_storage {
    const char *name, *url, *region, *ca;
    bool virtual_host, trailers, insecure, main;
    /* 0: the file does not set the timeout, so its default applies. */
    uint64_t connect_timeout_ms, response_timeout_ms, idle_timeout_ms;
    uint64_t requests_per_minute, bytes_per_second; /* 0: no limit */
    VEC(struct conf_credential) credentials;
    size_t line;
    unsigned given;
};

struct conf_forge {
    const char *host; /* as it is written in the file */
    const char *kind; /* "github", "gitlab", "gitea", or "" for github.com */
    const char *api, *git, *bucket;
    const char *token;      /* one token, or several with commas between them */
    const char *token_file; /* path of a file with one token on each line */
    bool zip, wikis, gists, lfs, issues, pulls, releases;
    size_t line;
    unsigned given;
};

struct conf_user {
    const char *name, *id, *display_name, *email, *access_key, *secret_key;
    bool admin;
    size_t line;
    unsigned given;
};

/* Strings are never NULL: "" is "not set". Sizes are bytes, durations milliseconds. */
struct conf {
    const char *data;
    const char *access_key, *secret_key;
    struct {
        const char *listen;
        struct conf_tls tls;
        const char *region, *domain;
        bool signature_v2;
        const char *website_domain;
        const char *url;             /* URL under which clients reach the gateway */
        const char *storage_classes; /* names, separated by commas */
        uint64_t max_buckets;        /* 0: no limit */
        uint64_t document_memory;
        struct {
            uint64_t day_ms, interval_ms; /* interval_ms 0: derived from day_ms */
        } lifecycle;
        struct {
            uint64_t interval_ms;
        } logging;
        bool sse_c_over_http;
        struct {
            uint64_t max_age_ms, max_pending;
        } notifications;
    } s3;
    struct {
        const char *listen;
        struct conf_tls tls;
    } api;
    struct {
        const char *http, *udp;
        int mode;  /* enum conf_tracker_mode */
        int share; /* enum conf_tracker_share */
        bool open, approved_clients, allow_low_ports;
        uint64_t interval_ms, min_interval_ms, peer_timeout_ms, snapshot_ms;
        uint64_t numwant, max_numwant, max_scrape, max_torrents, max_peers, feed_max, workers;
        uint64_t max_per_user, max_per_address;
        const char *prefix;
        const char *trusted; /* networks, separated by commas */
        const char *url;     /* URL under which clients reach the tracker */
        uint64_t hash_at_once;
    } tracker;
    struct {
        int engine; /* enum conf_engine */
        struct {
            const char *url;
            /* The databases for app, queue, lock, config and swarm; each is a number or a URL. */
            const char *database[5];
            uint64_t timeout_ms, connections;
            const char *ca;
            bool insecure;
        } redis;
    } store;
    struct {
        int engine;      /* enum conf_kv_engine */
        const char *url; /* URL of a Redis or PostgreSQL server */
        uint64_t connections, timeout_ms;
    } kv;
    struct {
        uint64_t memory, disk; /* bytes of the caches of tree nodes */
        /* Beginning of the storage namespaces that weir proposes; "": no proposal. */
        const char *space;
        uint64_t drop_again_ms;
        uint64_t gc_grace_ms, gc_day_ms;
        uint64_t gc_every_ms;        /* 0: no collection begins by itself */
        const char *hooks_hosts;     /* hosts that hooks may call (http/hosts.h) */
        const char *hooks_variables; /* variables that hooks may send (lake/actions.h) */
    } lake;
    struct {
        uint64_t workers, at_once;
        int check;                  /* enum conf_archive_check */
        uint64_t max_pack, scratch; /* bytes */
        uint64_t timeout_ms, resync_after_ms, lock_ms, look_ms;
        uint64_t rate;          /* requests a second */
        const char *satellites; /* names, separated by commas; "": the main storage */
        const char *ca;
    } archive;
    struct {
        uint64_t threshold; /* a shard with more objects than this is split */
        bool automatic;     /* shards are split and merged without a command */
    } shard;
    struct {
        uint64_t cache, memtable;
    } db;
    struct {
        uint64_t connections, per_address, workers, threads, waiting;
        uint64_t head_timeout_ms, idle_timeout_ms, body_rate;
        const char *proxies; /* networks, separated by commas */
    } http;
    struct {
        uint64_t threads;
    } worker;
    struct {
        uint64_t pause_retry_ms, check_interval_ms;
    } replication;
    uint64_t shutdown_timeout_ms;
    struct {
        int level, format; /* enum log_level, enum log_format */
    } log;

    VEC(struct conf_storage) storages; /* in the order of the file */
    VEC(struct conf_user) users;
    VEC(struct conf_forge) forges;

    /* Only conf/ uses the members below. */
    uint64_t groups_digest; /* hash of the text of the groups storages, users and forges */
    atomic_int refs;
    struct arena arena;
    const char *file;            /* path of the file; "" when none was read */
    struct conf_origin *origins; /* where each key's value came from; one item for each key */
};

/* --- loading --- */

enum { CONF_MAX_FILE = 256 * 1024, CONF_MAX_DEPTH = 8, CONF_MAX_PROBLEMS = 20 };

struct conf_flag {
    struct str name, value; /* name without the leading dashes */
};

struct conf_input {
    const char *file;           /* path from --config; NULL: conf_find_file() finds the file */
    const char *const *environ; /* "K=V" strings, NULL-terminated; NULL: no environment */
    const struct conf_flag *flags;
    size_t flag_count;
};

/* Loads all layers. ERR_INVALID: *problems has a line ("file:line: key: what is wrong") for each
 * problem, at most CONF_MAX_PROBLEMS. */
int conf_load(struct conf **out, const struct conf_input *in, struct buf *problems) MUST_CHECK;

/* Like conf_load(), but the text of the file is in memory. Problems name the file as `file`. */
int conf_load_text(struct conf **out, const char *file, struct str text,
                   struct buf *problems) MUST_CHECK;

struct conf *conf_ref(struct conf *c);
/* Drops a reference; `c` may be NULL. When the last reference is dropped, the secrets are
 * overwritten. */
void conf_unref(struct conf *c);

/* Prepares a reload. Keys that cannot change while weir runs must keep their old values. If the
 * value of such a key differs, `next`, which is not shared yet, gets the value of `old`. The names
 * of these keys are appended to *kept, separated by commas. */
void conf_keep_fixed(struct conf *next, const struct conf *old, struct buf *kept);

/* Returns the path of the configuration file. It is the file given in `in`, or else $WEIR_CONFIG,
 * or else ./weir.yaml or /etc/weir/weir.yaml if it exists, or else NULL. The path is borrowed from
 * the input. */
const char *conf_find_file(const struct conf_input *in);

/* --- showing --- */

/* Returns the path of the file that was read, or "". */
const char *conf_file(const struct conf *c);

/* Appends the value in the notation of the configuration file; secrets are masked. */
void conf_value_text(const struct conf *c, const struct conf_key *key, struct buf *out);

/* Appends where the value came from: "default", "weir.yaml:12", "environment WEIR_LOG_LEVEL" or
 * "flag --log.level". */
void conf_source_text(const struct conf *c, const struct conf_key *key, struct buf *out);

#endif
