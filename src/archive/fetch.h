/* Talking to a git server over smart HTTP (gitprotocol-http): the refs of a repository, and a pack
 * of its objects as a reader. Nothing is stored here. docs/archive.md, "Fetching", has the rules.
 *
 *     git_remote_open()      GET info/refs, and with protocol version 2 also ls-refs
 *     git_remote_refs()      what the server has
 *     git_remote_fetch()     POST git-upload-pack: a pack; again for the next pack
 *     git_remote_close()
 *
 * The server is hostile. Every answer is limited in size and time, and memory is bounded: the
 * list of refs (refs.h) and about 0.6 MiB. Every failure becomes a struct fetch_fault, which tells
 * what an `.error` object needs.
 *
 * A git_remote belongs to one thread at a time. */
#ifndef ARCHIVE_FETCH_H
#define ARCHIVE_FETCH_H

#include "archive/advert.h"
#include "archive/fault.h"

enum {
    GIT_WANTS_MAX = 100 * 1000, /* ids that one fetch asks for: git http-backend takes 10 MB */
    GIT_HAVES_MAX = 20 * 1000,
    GIT_REFRESH_MAX = 3, /* how often refs may move between listing and fetching */
    GIT_REDIRECTS_MAX = 3,
};

/* 0 stands for the default of each. */
struct fetch_limits {
    uint64_t idle_ms;      /* no byte at all; 60 s */
    uint64_t pack_idle_ms; /* no byte of the pack, whatever else comes; 15 min */
    /* An answer that is slower than this on average over `slow_ms`; for packs from their first byte
     * on; 1 KiB/s over 5 min. */
    uint64_t slow_bytes_per_s;
    uint64_t slow_ms;
    uint64_t total_ms; /* from git_remote_open() to the last byte; 12 h */
    uint64_t pack_max; /* bytes of a pack; 64 GiB */
};

/* Strings are borrowed until the close. */
struct git_remote_options {
    /* Borrowed until the close. It uses no proxy (client_options.direct), because a proxy would
     * hide the addresses that are judged. */
    struct client *client;
    const char *url;              /* of the repository, as a git clone takes it */
    struct str token_user, token; /* sent by Basic to the host of `url` alone; empty: none */
    /* The hosts of `url` and `same_host` are in the configuration, so they may be on loopback or in
     * a private network. Otherwise only public addresses are connected to (http/hosts.h). */
    bool allow_private;
    struct str same_host; /* another host[:port] that redirects may lead to; empty: none */
    struct fetch_limits limits;
    const _Atomic(bool) *cancel; /* may be NULL */
    /* Shared by all remotes of a process, and false at first: only one remote at a time has a large
     * list of refs (refs.h), and the others wait. NULL: nobody waits. */
    _Atomic(bool) *large_list;
};

struct git_remote;

/* Reads the refs of a repository; they are sorted. A repository without refs is a success. When the
 * call fails, *fault tells why, except for ERR_CANCELED, where it has ARCHIVE_OK. */
int git_remote_open(struct git_remote **out, const struct git_remote_options *o,
                    struct fetch_fault *fault, struct err *err) MUST_CHECK;
void git_remote_close(struct git_remote *r); /* NULL is fine; also closes an open pack */

const struct git_refs *git_remote_refs(const struct git_remote *r); /* until refresh or close */
/* The URL that answered, behind redirects: the forge has renamed the repository if it differs from
 * the URL that was asked for. */
struct str git_remote_url(const struct git_remote *r);
bool git_remote_is_v2(const struct git_remote *r);

/* Reads the refs again, after git_remote_fetch() has returned ERR_CONFLICT. */
int git_remote_refresh(struct git_remote *r, struct fetch_fault *fault, struct err *err) MUST_CHECK;

/* Asks for a pack. *pack gives the bytes of the pack, as the server sends them; it ends when the
 * server's answer has ended well. The caller closes it; before that no other call is made.
 *
 * `f` has at most GIT_WANTS_MAX wants. A repository with more of them takes several fetches, each
 * with the wants of those before as haves (bundle.h, bundle_wants_init()). Of the haves the first
 * GIT_HAVES_MAX are sent.
 *
 * ERR_CONFLICT: a ref has moved since the refs were read ("not our ref"); the caller calls
 * git_remote_refresh() and asks again, GIT_REFRESH_MAX times at most. Other errors: as in
 * git_remote_open(). */
int git_remote_fetch(struct git_remote *r, const struct git_fetch *f, struct reader **pack,
                     struct fetch_fault *fault, struct err *err) MUST_CHECK;
/* Why the pack's reader failed, or NULL when it did not: then the failure is one of the reader's
 * consumer. */
const struct fetch_fault *git_remote_fault(const struct git_remote *r);

#endif
