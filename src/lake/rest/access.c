/* Asks the access engine of S3 whether a caller may do an action in a repository, or in another
 * bucket (docs/lake-rest.md, "Rights"). */
#include "lake/names.h"
#include "lake/right.h"
#include "lake/rest/web.h"
#include "route/resolve.h"
#include "s3/access/bucket_rules.h"
#include "s3/access/request_value.h"

/* An open bucket, with its policy and the other rules of access to it. */
struct web_bucket {
    struct bucket *bucket; /* holds a reference */
    struct bucket_rules rules;
};

/* The facts about a call that conditions of a policy may use. */
struct web_question {
    struct request_facts facts;
    struct str prefix; /* for a listing: the value of s3:prefix */
    struct str tags;   /* tags of the object, in their stored form */
    struct str value;  /* memory of the value that the policy asked for last */
};

/* --- buckets --- */

static void web_bucket_release(struct web_bucket *b)
{
    if (b->bucket)
        b->bucket->ops->unref(b->bucket);
}

static int web_bucket_open(struct web_bucket *out, struct rest_call *c, struct str name,
                           struct err *err)
{
    struct web_bucket b = {0};
    int code = route_bucket(web_of(c)->services->routes, web_user(c)->id, name, &b.bucket, err);

    if (code == 0)
        code = bucket_rules_read(&b.rules, c->arena, b.bucket, err);
    if (code < 0)
        web_bucket_release(&b);
    else
        *out = b;
    return code;
}

/* --- the question --- */

static bool web_condition(void *ctx, enum policy_key key, struct str suffix,
                          struct policy_values *out)
{
    struct web_question *q = ctx;

    q->value = key == POLICY_KEY_PREFIX      ? q->prefix
               : key == POLICY_KEY_AUTH_TYPE ? STR("REST-HEADER")
               : key == POLICY_KEY_EXISTING_OBJECT_TAG
                   ? request_tag_value(q->facts.arena, q->tags, suffix)
                   : request_value(&q->facts, key);
    *out = (struct policy_values){&q->value, 1};
    return q->value.p != NULL;
}

/* Fills a policy request: may the caller do the action on the key? The policy request points to
 * `q`, so `q` must live as long. */
static struct policy_request web_question_of(struct web_question *q, struct rest_call *c,
                                             const struct web_bucket *b, enum s3_action action,
                                             struct str key)
{
    const struct user *user = web_user(c);
    bool on_object = s3_actions[action].on == S3_ON_OBJECT;

    *q = (struct web_question){
        .facts = {c->req, user, clock_wall_ms(), str_z(web_of(c)->services->conf->s3.region),
                  b->rules.info.owner, c->arena},
        .prefix = on_object ? STR_EMPTY : key,
    };
    return (struct policy_request){.who = {.id = user->id, .name = user->name},
                                   .action = action,
                                   .bucket = b->rules.info.name,
                                   .key = on_object ? key : STR_EMPTY,
                                   .value = web_condition,
                                   .ctx = q,
                                   .arena = c->arena};
}

static struct access_request web_ask_bucket(struct web_question *q, struct rest_call *c,
                                            const struct web_bucket *b, enum s3_action action,
                                            struct str key)
{
    struct policy_request ask = web_question_of(q, c, b, action, key);

    return bucket_rules_ask(&b->rules, &ask);
}

static bool web_bucket_may(struct rest_call *c, const struct web_bucket *b, enum s3_action action,
                           struct str key, const struct object_info *object)
{
    struct web_question q;
    struct policy_request ask = web_question_of(&q, c, b, action, key);

    if (object)
        q.tags = object->meta.tags;
    return bucket_rules_allow(&b->rules, &ask, object);
}

/* --- repositories --- */

/* Returns the key to which the rules are applied. The ref in it is written as the call writes it,
 * not resolved (docs/security.md, P1). */
static struct str web_key(struct rest_call *c, struct web_ask ask)
{
    return ask.ref.len
               ? arena_fmt(c->arena, STR_FMT "/" STR_FMT, STR_ARG(ask.ref), STR_ARG(ask.path))
               : STR("");
}

int web_gate_open(struct web_bucket **out, struct rest_call *c, const struct lake_repo *r,
                  struct err *err)
{
    struct web_bucket *gate = arena_new(c->arena, struct web_bucket);
    int code = gate ? 0 : err_code(err, ERR_NO_MEMORY);

    if (code == 0 && !web_user(c)->admin)
        code = web_bucket_open(gate, c, r->id, err);
    if (code < 0)
        return code == ERR_NO_BUCKET ? err_set(err, ERR_NOT_FOUND, "repository not found") : code;
    *out = gate;
    return 0;
}

/* Whether the caller may do an action in a repository. All objects of a repository belong to the
 * repository's owner. */
bool web_gate_may(struct rest_call *c, const struct web_bucket *gate, struct web_ask ask)
{
    struct object_info object = {.meta = {.tags = ask.tags}};

    return web_user(c)->admin || web_bucket_may(c, gate, ask.action, web_key(c, ask), &object);
}

void web_gate_close(struct web_bucket *gate)
{
    if (gate)
        web_bucket_release(gate);
}

static int web_judge(struct rest_call *c, const struct lake_repo *r, struct web_ask ask, bool *may,
                     struct err *err)
{
    struct web_bucket *gate = NULL;
    int code = web_gate_open(&gate, c, r, err);

    *may = code == 0 && web_gate_may(c, gate, ask);
    web_gate_close(gate);
    return code;
}

int web_need(struct rest_call *c, const struct lake_repo *r, struct web_ask ask, struct err *err)
{
    bool may = false;
    int code = web_judge(c, r, ask, &may, err);

    return code == 0 && !may ? web_forbidden(c, err) : code;
}

bool web_may(struct rest_call *c, const struct lake_repo *r, struct web_ask ask)
{
    struct err ignored = {0};
    bool may = false;

    return web_judge(c, r, ask, &may, &ignored) == 0 && may;
}

int web_object(struct rest_call *c, const struct lake_repo *r, struct str ref, struct str path,
               struct lake_object *out, struct err *err)
{
    struct err why = {0};
    int found = lake_stat(web_of(c)->lake, c->arena, r, ref, path, out, &why), code = 0;
    struct web_ask ask = {.action = S3_ACTION_GET_OBJECT, .ref = ref, .path = path};

    if (found == 0) /* the tags of the very object whose bytes are read (P4) */
        ask.tags = out->entry.tags;
    /* If the look-up of the object has failed, its tags are unknown, and so the right to read it is
     * unknown, too. */
    if (found == 0 || err_kind(found) == ERR_KIND_EXPECTED)
        code = web_need(c, r, ask, err);
    if (code == 0 && found < 0)
        *err = why;
    return code < 0 ? code : found;
}

/* --- whole refs --- */

/* A question to the access engine: may the caller do an action on every key below a prefix? */
struct web_below {
    struct web_question q;
    struct access_request r;
    struct str begin;
};

static void web_below_fill(struct web_below *out, struct rest_call *c,
                           const struct web_bucket *gate, enum s3_action action, struct str begin)
{
    out->begin = begin;
    out->r = web_ask_bucket(&out->q, c, gate, action, begin);
}

/* Whether the caller may do the action on every key below the prefix. */
static bool web_below_may(const struct web_below *b)
{
    return access_granted_below(&b->r, b->begin) &&
           !access_denied_beyond(&b->r, b->begin, STR_EMPTY);
}

/* Checks that the caller may do the action on every key below a prefix, for certain
 * (docs/security.md, P3). */
static int web_need_all_below(struct rest_call *c, const struct lake_repo *r, enum s3_action action,
                              struct str begin, struct err *err)
{
    struct web_bucket *gate = NULL;
    int code = web_gate_open(&gate, c, r, err);
    bool may = code == 0 && web_user(c)->admin;
    struct web_below b;

    if (code == 0 && !may) {
        web_below_fill(&b, c, gate, action, begin);
        may = web_below_may(&b);
    }
    web_gate_close(gate);
    return code == 0 && !may ? web_forbidden(c, err) : code;
}

int web_need_below_ref(struct rest_call *c, const struct lake_repo *r, struct web_ask ask,
                       struct err *err)
{
    return web_need_all_below(c, r, ask.action, web_key(c, ask), err);
}

int web_need_whole(struct rest_call *c, const struct lake_repo *r, struct err *err)
{
    return web_need_all_below(c, r, S3_ACTION_GET_OBJECT, STR_EMPTY, err);
}

/* Whether the caller may put the content of the ref `source` into the ref `dest`: the conditions
 * a), b) and c) of P2 in docs/security.md. */
static bool web_gate_may_take(struct rest_call *c, const struct web_bucket *gate, struct str source,
                              struct str dest)
{
    struct web_below read, write;

    web_below_fill(&read, c, gate, S3_ACTION_GET_OBJECT, source);
    web_below_fill(&write, c, gate, S3_ACTION_PUT_OBJECT, dest);
    return access_granted_below(&write.r, dest) && !access_denied_beyond(&write.r, dest, source) &&
           access_allowed(&read.r) &&
           (web_below_may(&read) || !access_reveals(&read.r, source, dest));
}

int web_need_take(struct rest_call *c, const struct lake_repo *r, struct str from, struct str to,
                  struct err *err)
{
    struct str source = web_key(c, (struct web_ask){.ref = from});
    struct str dest = web_key(c, (struct web_ask){.ref = to});
    struct web_bucket *gate = NULL;
    int code = web_gate_open(&gate, c, r, err);
    bool may = code == 0 && (web_user(c)->admin || web_gate_may_take(c, gate, source, dest));
    web_gate_close(gate);
    return code == 0 && !may ? web_forbidden(c, err) : code;
}

/* --- finding repositories --- */

int web_find_repo(struct rest_call *c, struct lake_repo *out, struct err *err)
{
    struct str id = rest_text(c, "repository");
    int code = lake_check_repo(id, err);

    return code == 0 ? lake_repo_get(web_of(c)->lake, c->arena, id, out, err) : code;
}

int web_repo(struct rest_call *c, struct web_ask ask, struct lake_repo *out, struct err *err)
{
    int code = web_find_repo(c, out, err);

    return code == 0 ? web_need(c, out, ask, err) : code;
}

/* --- other buckets --- */

/* Whether the bucket's name means the same bucket for the caller and for `user`. Users can have
 * different routes, and different keys on remote storages. */
static int web_is_same_bucket(struct rest_call *c, const struct web_bucket *b, struct str user,
                              bool *out, struct err *err)
{
    struct bucket *other = NULL;

    *out = str_eq(user, web_user(c)->id);
    if (*out)
        return 0;
    int code = route_bucket(web_of(c)->services->routes, user, b->bucket->name, &other, err);
    if (code == 0) {
        *out = bucket_home(other) == bucket_home(b->bucket);
        other->ops->unref(other);
    }
    return code;
}

/* Finds out whether the caller may do an action on a key of a bucket. If users have credentials of
 * their own on the bucket's storage, that storage decides. To find out whether the caller may read
 * the key there, this function sends a HEAD in the caller's name; later weir reads the key in the
 * name of the repository's owner. */
static int web_judge_key(struct rest_call *c, const struct web_bucket *b, enum s3_action action,
                         struct str key, bool *may, struct err *err)
{
    static const struct object_conditions none;
    struct get_result object = {0};
    int code = ERR_NOT_FOUND;

    if (action == S3_ACTION_GET_OBJECT)
        code = b->bucket->ops->head(b->bucket, c->arena, key, STR_EMPTY, &none, &object, err);
    if (code < 0 && code != ERR_NOT_FOUND)
        return code;
    if (bucket_can(b->bucket, STORAGE_CREDENTIALS))
        *may = code == 0 || action != S3_ACTION_GET_OBJECT;
    else
        *may = web_bucket_may(c, b, action, key, code == 0 ? &object.info : NULL);
    return 0;
}

int web_need_key(struct rest_call *c, const struct web_key_ask *ask, struct err *err)
{
    struct web_bucket b;
    bool may = web_user(c)->admin, same = true;
    int code = web_bucket_open(&b, c, ask->bucket, err);

    if (code < 0)
        return code;
    if (!may)
        code = web_judge_key(c, &b, ask->action, ask->key, &may, err);
    if (code == 0 && !web_user(c)->admin)
        code = web_is_same_bucket(c, &b, ask->user, &same, err);
    web_bucket_release(&b);
    return code == 0 && !(may && same) ? web_forbidden(c, err) : code;
}

int web_need_space(struct rest_call *c, struct str bucket, struct str begin, struct err *err)
{
    const struct user *user = web_user(c);
    struct bucket *b = NULL;
    bool may = false;
    int code = route_bucket(web_of(c)->services->routes, user->id, bucket, &b, err);

    if (code < 0)
        return code;
    code = lake_right_judge_space(web_of(c)->lake, c->arena, user->id, b, begin, &may, err);
    b->ops->unref(b);
    return code == 0 && !may ? web_forbidden(c, err) : code;
}

int web_need_below(struct rest_call *c, const struct web_key_ask *ask, struct err *err)
{
    const struct user *user = web_user(c);
    struct web_bucket b;
    int code = user->admin ? 0 : web_bucket_open(&b, c, ask->bucket, err);

    if (code < 0 || user->admin)
        return code;
    struct str owner = bucket_can(b.bucket, STORAGE_CREDENTIALS)
                           ? ask->user
                           : arena_str(c->arena, b.rules.info.owner);
    web_bucket_release(&b);
    return str_eq(owner, user->id) ? 0 : web_forbidden(c, err);
}
