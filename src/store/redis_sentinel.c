/* Asking one sentinel, and choosing the master from the answers of several. */
#include "store/redis_int.h"

#include "base/clock.h"

/* How long the rest of a message may take once it has begun to arrive. */
#define NEWS_NS (200 * NS_PER_MS)

/* --- reading and comparing the answers of sentinels --- */

/* Returns a field of SENTINEL MASTER's answer, a flat list of names and values. */
static struct str sentinel_field(const struct reply *list, struct str name)
{
    for (size_t i = 0; i + 1 < list->count; i += 2)
        if (str_eq(list->items[i].str, name))
            return list->items[i + 1].str;
    return STR_EMPTY;
}

static int sentinel_read_address(struct redis_address *out, const struct reply *r, struct err *err)
{
    struct str host = r->count == 2 ? r->items[0].str : STR_EMPTY;
    uint64_t port = 0;

    if (r->type != REPLY_ARRAY || host.len == 0 || host.len > REDIS_HOST_MAX ||
        memchr(host.p, 0, host.len) || str_u64(r->items[1].str, &port) < 0 || port == 0 ||
        port > UINT16_MAX)
        return err_set(err, ERR_PEER, "it answers no address");
    *out = (struct redis_address){.port = (uint16_t)port};
    memcpy(out->host, host.p, host.len);
    return 0;
}

static int check_refusal(const struct reply *r, struct err *err)
{
    int code = r->type == REPLY_ERROR ? redis_refusal(r->str) : 0;

    if (r->type != REPLY_ERROR)
        return 0;
    return err_set(err, code ? code : ERR_PEER, STR_FMT, STR_ARG(r->str));
}

int sentinel_read(struct sentinel_answer *out, const struct reply *master,
                  const struct reply *address, struct err *err)
{
    struct sentinel_answer answer = {.heard = true};
    int rc;

    if (reply_is_nil(address) ||
        (master->type == REPLY_ERROR && str_starts(master->str, STR("ERR No such master"))))
        return err_set(err, ERR_NOT_FOUND, "it knows no master of that name");
    rc = check_refusal(master, err);
    if (rc == 0)
        rc = check_refusal(address, err);
    if (rc == 0 && (master->type != REPLY_ARRAY ||
                    str_u64(sentinel_field(master, STR("config-epoch")), &answer.epoch) < 0))
        rc = err_set(err, ERR_PEER, "it answers no config-epoch");
    if (rc == 0)
        rc = sentinel_read_address(&answer.address, address, err);
    if (rc == 0)
        *out = answer;
    return rc;
}

static bool sentinel_same_address(const struct redis_address *a, const struct redis_address *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

/* Whether more than half of all sentinels name this address. */
static bool has_majority(const struct redis_address *address, const struct sentinel_answer *answers,
                         size_t count)
{
    size_t votes = 0;

    for (size_t i = 0; i < count; i++)
        votes += answers[i].heard && sentinel_same_address(&answers[i].address, address);
    return votes > count / 2;
}

int sentinel_choose(const struct sentinel_answer *known, bool failed,
                    const struct sentinel_answer *answers, size_t count)
{
    const struct sentinel_answer *best = NULL;

    for (size_t i = 0; i < count; i++)
        if (answers[i].heard && (!best || answers[i].epoch > best->epoch))
            best = &answers[i];
    if (!best)
        return -1;
    if (known->heard && best->epoch <= known->epoch &&
        (!failed || sentinel_same_address(&best->address, &known->address) ||
         !has_majority(&best->address, answers, count)))
        return -1;
    return (int)(best - answers);
}

/* --- talking to one sentinel --- */

void sentinel_close(struct sentinel *s)
{
    redis_conn_close(s->questions);
    redis_conn_close(s->news);
    s->questions = s->news = NULL;
}

/* Subscribes to the messages about failovers. An error reply is ignored: if the user may not
 * subscribe, weir learns of a failover in the next round. */
static int subscribe(struct redis_conn *news, uint64_t deadline_ns, struct err *err)
{
    struct arena arena = ARENA_INIT(256 * KIB);
    struct buf wire = {0};
    struct reply *reply;
    int rc;

    resp_write(&wire, (struct str[]){STR("SUBSCRIBE"), STR("+switch-master")}, 2);
    rc = redis_conn_send(news, buf_str(&wire), deadline_ns, err);
    if (rc == 0)
        rc = redis_conn_receive(news, &arena, &reply, deadline_ns, err);
    buf_release(&wire);
    arena_release(&arena);
    return rc;
}

static int sentinel_open_both(struct sentinel *s, uint64_t deadline_ns, struct err *err)
{
    int rc;

    if (s->questions)
        return 0;
    rc = redis_conn_open(&s->questions, &s->endpoint, deadline_ns, err);
    if (rc == 0)
        rc = redis_conn_open(&s->news, &s->endpoint, deadline_ns, err);
    if (rc == 0)
        rc = subscribe(s->news, deadline_ns, err);
    return rc;
}

/* Asks for the master's epoch first, and then for its address. So a failover in between makes a new
 * address look old, never an old address look new. */
static int question(struct sentinel *s, const char *name, uint64_t deadline_ns, struct err *err)
{
    struct arena arena = ARENA_INIT(256 * KIB);
    struct reply *replies[2];
    struct buf wire = {0};
    int rc;

    resp_write(&wire, (struct str[]){STR("SENTINEL"), STR("MASTER"), str_z(name)}, 3);
    resp_write(&wire, (struct str[]){STR("SENTINEL"), STR("GET-MASTER-ADDR-BY-NAME"), str_z(name)},
               3);
    rc = redis_conn_send(s->questions, buf_str(&wire), deadline_ns, err);
    for (size_t i = 0; i < ARRAY_SIZE(replies) && rc == 0; i++)
        rc = redis_conn_receive(s->questions, &arena, &replies[i], deadline_ns, err);
    if (rc == 0)
        rc = sentinel_read(&s->answer, replies[0], replies[1], err);
    buf_release(&wire);
    arena_release(&arena);
    return rc;
}

int sentinel_ask(struct sentinel *s, const char *name, uint64_t deadline_ns, struct err *err)
{
    const struct redis_target *t = s->endpoint.target;
    int rc = sentinel_open_both(s, deadline_ns, err);

    s->answer.heard = false;
    if (rc == 0)
        rc = question(s, name, deadline_ns, err);
    if (rc == 0)
        return 0;
    sentinel_close(s);
    return err_wrap(err, rc, "sentinel %s:%u", t->host, t->port);
}

void sentinel_hear(struct sentinel *s)
{
    struct arena arena = ARENA_INIT(256 * KIB);
    struct reply *reply;
    int rc;

    do {
        arena_reset(&arena);
        rc = redis_conn_receive(s->news, &arena, &reply, clock_mono_ns() + NEWS_NS, NULL);
    } while (rc == 0 && redis_conn_has_input(s->news));
    if (rc < 0)
        sentinel_close(s);
    arena_release(&arena);
}
