/* The feed of accepted private announces, and its consumers. */
#include "swarm/feed.h"

#include "swarm/cache_int.h"

#include <stdio.h>

enum { NAME_MAX_LEN = 64 };

static int check_consumer_name(struct str name, struct err *err)
{
    if (name.len == 0 || name.len > NAME_MAX_LEN || !str_is_utf8(name))
        return err_set(err, ERR_INVALID, "the name of a consumer has 1 to %d bytes", NAME_MAX_LEN);
    return 0;
}

static int no_consumer(struct err *err)
{
    return err_set(err, ERR_NOT_FOUND, "no such consumer");
}

/* --- records --- */

/* Cuts the next field off *rest and returns it. */
static struct str feed_field(struct str *rest)
{
    struct str out;

    str_cut(*rest, ' ', &out, rest);
    return out;
}

static double read_real(struct str text)
{
    double out = 0;
    char z[64];

    snprintf(z, sizeof(z), STR_FMT, STR_ARG(text));
    return sscanf(z, "%lf", &out) == 1 ? out : -1;
}

/* Reads a record as swarm_announce.lua writes it. */
static int read_feed_record(struct str record, struct delta *out, struct err *err)
{
    struct str rest = str_skip(record, PEER_ID_LEN);
    uint64_t at = 0;
    bool good = record.len > PEER_ID_LEN;

    if (good)
        memcpy(out->peer_id, record.p, PEER_ID_LEN);
    good = good && str_u64(feed_field(&rest), &out->user_id) == 0 &&
           str_u64(feed_field(&rest), &out->torrent_id) == 0 &&
           str_u64(feed_field(&rest), &at) == 0;
    struct str flags = feed_field(&rest);
    out->at = (int64_t)at;
    out->created = str_chr(flags, 'c') >= 0;
    out->snatched = str_chr(flags, 's') >= 0;
    out->stopped = str_chr(flags, 'x') >= 0;
    out->seeder = str_chr(flags, 'd') >= 0;
    good = good && str_u64(feed_field(&rest), &out->left) == 0 &&
           str_u64(feed_field(&rest), &out->raw_uploaded) == 0 &&
           str_u64(feed_field(&rest), &out->raw_downloaded) == 0;
    out->uploaded = read_real(feed_field(&rest));
    out->downloaded = read_real(feed_field(&rest));
    return good ? 0
                : err_set(err, ERR_CORRUPT, "record %llu of the feed is damaged",
                          (unsigned long long)out->number);
}

static int read_feed_records(struct arena *a, const struct reply *r, struct delta **out,
                             size_t *count, struct err *err)
{
    uint64_t number;
    int code = reply_expect(r, REPLY_ARRAY, err);

    if (code == 0 && (r->count != 2 || str_u64(r->items[0].str, &number) < 0))
        code = err_set(err, ERR_TYPE, "the store answered no records");
    if (code == 0)
        code = reply_expect(&r->items[1], REPLY_ARRAY, err);
    if (code < 0)
        return code;
    struct delta *deltas = arena_array(a, r->items[1].count + 1, sizeof(*deltas));
    if (!deltas)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; code == 0 && i < r->items[1].count; i++) {
        deltas[i].number = number + i;
        code = read_feed_record(r->items[1].items[i].str, &deltas[i], err);
    }
    *out = deltas;
    *count = code == 0 ? r->items[1].count : 0;
    return code;
}

int feed_read(struct cache *c, struct arena *a, struct str name, struct feed_page page,
              struct delta **out, size_t *count, struct err *err)
{
    const struct str args[] = {c->o.prefix, name, arena_fmt(a, "%zu", page.skip),
                               arena_fmt(a, "%zu", page.max)};
    struct reply *r;

    *out = NULL;
    *count = 0;
    int code = check_consumer_name(name, err);
    if (code < 0)
        return no_consumer(err);
    if (page.max == 0)
        return 0;
    code = swarm_eval(c->o.store, a, SCRIPT_feed_read, &(struct store_args){args, ARRAY_SIZE(args)},
                      &r, err);
    if (code == 0 && reply_is_nil(r))
        return no_consumer(err);
    return code == 0 ? read_feed_records(a, r, out, count, err) : code;
}

/* --- consumers --- */

static int change_consumer(struct cache *c, enum swarm_script which, struct str name,
                           int64_t *answer, struct err *err)
{
    struct cache_call k;
    int code = check_consumer_name(name, err);

    if (code < 0)
        return code;
    call_init(&k, c);
    call_str(&k, name);
    code = call_integer(&k, which, answer, err);
    call_release(&k);
    return code;
}

int feed_add_consumer(struct cache *c, struct str name, struct err *err)
{
    int64_t added;
    int code = change_consumer(c, SCRIPT_feed_add, name, &added, err);

    return code == 0 && !added ? err_set(err, ERR_EXISTS, "there is such a consumer") : code;
}

int feed_remove_consumer(struct cache *c, struct str name, struct err *err)
{
    int64_t removed;
    int code = change_consumer(c, SCRIPT_feed_remove, name, &removed, err);

    return code == 0 && !removed ? no_consumer(err) : code;
}

int feed_acknowledge(struct cache *c, struct str name, uint64_t number, struct err *err)
{
    struct cache_call k;
    int64_t answer;
    int code = check_consumer_name(name, err);

    if (code == 0 && number > SWARM_ID_MAX)
        code = err_set(err, ERR_RANGE, "there is no such record yet");
    if (code < 0)
        return code;
    call_init(&k, c);
    call_str(&k, name);
    call_u64(&k, number);
    code = call_integer(&k, SCRIPT_feed_acknowledge, &answer, err);
    call_release(&k);
    if (code == 0 && answer == 0)
        return no_consumer(err);
    return code == 0 && answer < 0 ? err_set(err, ERR_RANGE, "there is no such record yet") : code;
}

int feed_consumers(struct cache *c, struct arena *a, struct feed_consumer **out, size_t *count,
                   struct err *err)
{
    struct reply *r;
    uint64_t last = 0;
    int code = swarm_eval(c->o.store, a, SCRIPT_feed_consumers,
                          &(struct store_args){&c->o.prefix, 1}, &r, err);

    if (code == 0)
        code = reply_expect(r, REPLY_ARRAY, err);
    if (code == 0 && (r->count % 2 == 0 || str_u64(r->items[0].str, &last) < 0))
        code = err_set(err, ERR_TYPE, "the store answered no consumers");
    if (code < 0)
        return code;
    *count = (r->count - 1) / 2;
    *out = arena_array(a, *count + 1, sizeof(**out));
    if (!*out)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < *count; i++) {
        struct feed_consumer *f = &(*out)[i];
        f->name = r->items[1 + 2 * i].str;
        if (str_u64(r->items[2 + 2 * i].str, &f->acknowledged) < 0)
            return err_set(err, ERR_CORRUPT, "what a consumer acknowledged is no number");
        f->waiting = last - f->acknowledged;
    }
    return 0;
}
