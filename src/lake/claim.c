/* Makes, judges and removes claims of namespaces. */
#include "lake/claim_int.h"
#include "lake/names.h"
#include "lake/overlap.h"
#include "lake/place.h"

#include "base/clock.h"

#define CLAIM_WORDS "weir repository " /* before the partition's name in the object */
#define CLAIM_LIFE  "life "
#define CLAIM_RIVAL "rival "

enum { CLAIM_BYTES_MAX = 4096 };

struct kv_name lake_key_claim(struct arena *a, struct str partition)
{
    return lake_key_in(a, LAKE_PARTITION, "claims", partition);
}

int claim_init(struct claim *c, struct lake *l, const struct lake_repo *r, struct err *err)
{
    *c = (struct claim){.lake = l, .repo = r};
    return lake_check_space(r->space, &c->bucket, &c->prefix, err);
}

struct str claim_key(struct claim *c, struct str prefix, const char *name)
{
    return arena_fmt(&c->arena, STR_FMT "%s%s", STR_ARG(prefix), prefix.len ? "/" : "", name);
}

static int claim_open(struct object_place *p, struct claim *c, struct str key, enum place_use use,
                      struct err *err)
{
    return lake_place_open(p, c->lake, &c->arena, c->repo->owner, c->bucket, key, use, err);
}

static int claim_in_use(const struct claim *c, struct str owner, struct err *err)
{
    struct str line, rest;

    str_cut(owner, '\n', &line, &rest); /* the error shows only the first line */
    return err_set(err, ERR_IN_USE, "storage namespace already in use: " STR_FMT " (" STR_FMT ")",
                   STR_ARG(c->repo->space), STR_ARG(str_head(line, 128)));
}

int claim_see(struct claim *c, struct str key, struct claim_seen *out, struct err *err)
{
    struct buf text = BUF_INIT(CLAIM_BYTES_MAX);
    struct object_info info = {0};
    struct object_place p;
    int code = claim_open(&p, c, key, PLACE_READ, err);
    bool is_large;

    *out = (struct claim_seen){0};
    if (code == 0)
        code = object_place_end(&p, object_place_read(&p, &text, &info, err), err);
    is_large = code == ERR_TOO_LARGE; /* somebody has put another object there */
    if (code == 0 || is_large)
        *out = (struct claim_seen){is_large ? STR("an object that is too large for a claim")
                                            : arena_str(&c->arena, buf_str(&text)),
                                   info.etag, info.modified_ms};
    buf_release(&text);
    return code == ERR_NOT_FOUND || is_large ? 0 : code;
}

/* --- the words of a claim --- */

/* Whether the text is not empty, and all its bytes are visible ASCII, as in names and ids of weir.
 */
static bool claim_is_name(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.p[i] <= ' ' || text.p[i] > '~')
            return false;
    return text.len > 0;
}

/* Takes the next line, which must consist of `word` and a name; *out is the name. Returns false
 * when it does not. */
static bool claim_line(struct str *text, struct str word, struct str *out)
{
    struct str line, rest;

    if (!str_starts(*text, word) || !str_cut(*text, '\n', &line, &rest))
        return false;
    *out = str_skip(line, word.len);
    *text = rest;
    return claim_is_name(*out);
}

bool claim_parse(struct str text, struct claim_words *out)
{
    *out = (struct claim_words){0};
    if (!claim_line(&text, STR(CLAIM_WORDS), &out->partition) ||
        (text.len && !claim_line(&text, STR(CLAIM_LIFE), &out->life)) ||
        (text.len && !claim_line(&text, STR(CLAIM_RIVAL), &out->rival)) || text.len)
        return false;
    out->id = out->partition;
    while (out->id.len && out->id.p[out->id.len - 1] != '-')
        out->id.len--;
    return out->id.len-- > 1;
}

struct str claim_format(struct arena *a, const struct claim_words *w)
{
    struct str first = arena_fmt(a, CLAIM_WORDS STR_FMT "\n" CLAIM_LIFE STR_FMT "\n",
                                 STR_ARG(w->partition), STR_ARG(w->life));

    return w->rival.len
               ? arena_fmt(a, STR_FMT CLAIM_RIVAL STR_FMT "\n", STR_ARG(first), STR_ARG(w->rival))
               : first;
}

/* --- void claims --- */

/* Whether no repository has the partition, or can still be made in it, and no repository is being
 * deleted there. */
static int claim_partition_is_gone(struct claim *c, struct str partition, struct str id, bool *out,
                                   struct err *err)
{
    struct arena *a = &c->arena;
    struct kv_name names[] = {lake_key_repo(a, id), lake_key_to_delete(a, partition)};
    struct kv_value values[ARRAY_SIZE(names)];
    struct lake_repo now = {0};
    int code = kv_remove(c->lake->kv, lake_key_claim(a, partition), err);

    if (code == 0)
        code = kv_get_many(c->lake->kv, NULL, a, names, ARRAY_SIZE(names), values, err);
    if (code == 0 && kv_is_there(&values[0]))
        code = lake_repo_read(&now, a, values[0].bytes, err);
    *out = code == 0 && !str_eq(now.partition, partition) && !kv_is_there(&values[1]);
    return code;
}

/* Whether the repository of the claim is being made now: the claim is recent, and its row
 * exists. */
static int claim_is_being_used(struct claim *c, const struct claim_seen *seen, struct str partition,
                               bool *out, struct err *err)
{
    struct kv_value value;

    *out = false;
    if (seen->modified_ms + c->lake->claim_fresh_ms <= clock_wall_ms())
        return 0;
    int code =
        kv_get(c->lake->kv, NULL, &c->arena, lake_key_claim(&c->arena, partition), &value, err);
    *out = code == 0;
    return code == ERR_NOT_FOUND ? 0 : code;
}

/* Refuses the namespace, because it has the claim of another lake. Only that lake's records show
 * whether its repository exists, so this lake never takes the claim for void. */
static int claim_of_other_lake(const struct claim *c, struct err *err)
{
    return err_set(err, ERR_IN_USE,
                   "storage namespace already in use: " STR_FMT
                   " has the claim of another lake, or of an earlier state of this one; if that "
                   "lake is gone for good, remove the object " LAKE_CLAIM " there and try again",
                   STR_ARG(c->repo->space));
}

/* Checks that this repository may replace the claim `seen`: there is none, it is this repository's
 * own, or it is void. */
static int claim_pass(struct claim *c, const struct claim_seen *seen, struct err *err)
{
    bool known = false, used = false, gone = false;
    struct claim_words words;

    if (!seen->text.p || str_eq(seen->text, c->text))
        return 0;
    if (!claim_parse(seen->text, &words))
        return c->bare ? 0 : claim_in_use(c, seen->text, err);
    int code = claims_knows_life(c->lake, &c->arena, words.life, &known, err);
    if (code == 0 && !known)
        return claim_of_other_lake(c, err);
    if (code == 0)
        code = claim_is_being_used(c, seen, words.partition, &used, err);
    if (code == 0 && !used)
        code = claim_partition_is_gone(c, words.partition, words.id, &gone, err);
    return code == 0 && !gone ? claim_in_use(c, seen->text, err) : code;
}

/* --- other reasons to refuse a namespace --- */

/* Checks the folders above the namespace. If a namespace lay inside that of another repository, the
 * collections of that repository would remove its files. */
static int claim_check_parents(struct claim *c, struct err *err)
{
    struct str parent = c->prefix;
    struct claim_seen seen;
    int code = 0;

    while (code == 0 && parent.len) {
        while (parent.len && parent.p[parent.len - 1] != '/')
            parent.len--;
        while (parent.len && parent.p[parent.len - 1] == '/')
            parent.len--;
        code = claim_see(c, claim_key(c, parent, LAKE_CLAIM), &seen, err);
        if (code == 0)
            code = claim_pass(c, &seen, err);
    }
    return code;
}

/* Judges the claim of another repository that is being made: its row exists, and its object may
 * exist. If the object is absent, the row is removed, so that the other repository can no longer be
 * made. When two repositories are made at the same time, at least one fails, because each puts its
 * row before it looks for the rows of others. */
static int claim_judge_other(struct claim *c, struct str partition, struct str space,
                             struct err *err)
{
    struct claim other = {.lake = c->lake, .repo = c->repo};
    struct claim_seen seen = {0};
    struct claim_words words;
    int code = lake_check_space(space, &other.bucket, &other.prefix, err);

    if (code == 0)
        code = claim_see(&other, claim_key(&other, other.prefix, LAKE_CLAIM), &seen, err);
    bool is_made =
        code == 0 && claim_parse(seen.text, &words) && str_eq(words.partition, partition);
    if (code == 0 && is_made)
        code = claim_pass(c, &seen, err);
    else if (code == 0 || code == ERR_NO_BUCKET)
        code = kv_remove(c->lake->kv, lake_key_claim(&other.arena, partition), err);
    arena_release(&other.arena);
    return code;
}

/* Checks that no other repository, and no repository that is being made, has a namespace that
 * overlaps with this one. */
static int claim_check_others(struct claim *c, struct err *err)
{
    static const char prefix[] = "claims/";
    struct kv_range range = {.prefix = STR(prefix)};
    struct kv_scan *scan = NULL;
    struct str key, value;
    int code = kv_scan_open(&scan, c->lake->kv, NULL, LAKE_PARTITION, &range, err);

    while (code == 0 && (code = kv_scan_next(scan, &key, &value, err)) == 0) {
        struct str partition = arena_str(&c->arena, str_skip(key, sizeof(prefix) - 1));
        struct str space = arena_str(&c->arena, value);
        /* If both repositories want the same namespace, the object of the claim decides which of
         * them gets it. */
        if (!str_eq(space, c->repo->space) && lake_spaces_overlap(space, c->repo->space))
            code = claim_judge_other(c, partition, space, err);
    }
    kv_scan_free(scan);
    /* The repositories are checked after the claims. So if the repository of a claim was made
     * meanwhile, this check finds it. */
    return code == ERR_END ? lake_check_spaces(c->lake, c->repo, err) : code;
}

static int claim_not_empty(const struct claim *c, struct str key, struct err *err)
{
    return err_set(err, ERR_IN_USE,
                   "storage namespace already in use: " STR_FMT " has the object " STR_FMT
                   "; only a bare repository, into which a dump is restored, may have files there",
                   STR_ARG(c->repo->space), STR_ARG(str_head(key, 128)));
}

/* Checks that a folder of the namespace has no object but the claim. */
static int claim_check_empty(struct claim *c, const char *folder, struct err *err)
{
    struct str claim = claim_key(c, c->prefix, LAKE_CLAIM);
    struct list_options o = {.prefix = claim_key(c, c->prefix, folder), .limit = 2};
    struct list_result list = {0};
    struct object_place p;
    int code = claim_open(&p, c, o.prefix, PLACE_LIST, err);

    if (code == 0)
        code = object_place_end(&p, object_place_list(&p, &o, &list, err), err);
    for (size_t i = 0; code == 0 && i < list.count; i++)
        if (!str_eq(list.entries[i].info.key, claim))
            code = claim_not_empty(c, list.entries[i].info.key, err);
    return code;
}

/* --- making it --- */

/* On a storage that has no conditional puts, the claim is put without a condition. claim_make() and
 * all later checks read the object again in any case. */
int claim_put(struct claim *c, const struct claim_seen *seen, struct str text, struct err *err)
{
    struct object_conditions when = {0};
    struct object_place p;

    if (seen->text.p)
        when.if_match = arena_fmt(&c->arena, "\"" STR_FMT "\"", STR_ARG(seen->etag));
    else
        when.if_none_match = STR("*");
    int code = claim_open(&p, c, claim_key(c, c->prefix, LAKE_CLAIM), PLACE_PUT, err);
    if (code < 0)
        return code;
    code = object_place_put(&p, text, &when, err);
    if (code == ERR_UNSUPPORTED)
        code = object_place_put(&p, text, NULL, err);
    if (code == ERR_NOT_FOUND && seen->text.p) /* the object that If-Match is about is gone */
        code = err_code(err, ERR_PRECONDITION);
    return object_place_end(&p, code, err);
}

static int claim_make(struct claim *c, struct err *err)
{
    struct str key = claim_key(c, c->prefix, LAKE_CLAIM);
    struct claim_seen seen;
    int code = claim_see(c, key, &seen, err);

    if (code == 0)
        code = claim_pass(c, &seen, err);
    if (code == 0)
        code = claim_put(c, &seen, c->text, err);
    if (code == ERR_PRECONDITION || code == ERR_CONFLICT)
        return claim_in_use(c, STR("just claimed"), err);
    if (code == 0)
        code = claim_see(c, key, &seen, err);
    return code == 0 && !str_eq(seen.text, c->text) ? claim_in_use(c, seen.text, err) : code;
}

int lake_claim_space(struct lake *l, const struct lake_repo *r, bool bare, struct err *err)
{
    struct claim_words words = {.partition = r->partition};
    struct claim c;

    if (l->o.place)
        return 0;
    int code = claim_init(&c, l, r, err);
    c.bare = bare;
    if (code == 0)
        code = claims_life(l, &words.life, err);
    c.text = claim_format(&c.arena, &words);
    if (code == 0)
        code = claim_check_parents(&c, err);
    if (code == 0 && !bare)
        code = claim_check_empty(&c, LAKE_BODIES "/", err);
    if (code == 0 && !bare)
        code = claim_check_empty(&c, LAKE_NODES "/", err);
    if (code == 0)
        code = kv_set(l->kv, lake_key_claim(&c.arena, r->partition), r->space, err);
    if (code == 0) {
        code = claim_check_others(&c, err);
        if (code == 0)
            code = claim_make(&c, err);
        if (code < 0)
            lake_release_space(l, r);
    }
    arena_release(&c.arena);
    return code;
}

/* --- giving it up --- */

/* Whether the claim names this repository, and no other lake uses the namespace. */
static int claim_is_own(struct claim *c, const struct claim_seen *seen, bool *out, struct err *err)
{
    struct claim_words words;

    *out = false;
    if (!claim_parse(seen->text, &words) || !str_eq(words.partition, c->repo->partition) ||
        words.rival.len)
        return 0;
    return claims_knows_life(c->lake, &c->arena, words.life, out, err);
}

static int claim_undo(struct claim *c, struct err *err)
{
    struct str key = claim_key(c, c->prefix, LAKE_CLAIM);
    struct remove_result result;
    struct claim_seen seen;
    struct object_place p;
    bool is_own = false;
    int code = claim_see(c, key, &seen, err);

    if (code == 0)
        code = claim_is_own(c, &seen, &is_own, err);
    if (code < 0 || !is_own)
        return code;
    code = claim_open(&p, c, key, PLACE_REMOVE, err);
    if (code < 0)
        return code;
    code = object_place_may(&p, err);
    if (code == 0)
        code = p.bucket->ops->remove(p.bucket, &c->arena, key, &(struct remove_options){0}, &result,
                                     err);
    return object_place_end(&p, code, err);
}

void lake_release_space(struct lake *l, const struct lake_repo *r)
{
    struct err err = {0};
    struct claim c;

    if (l->o.place)
        return;
    int code = claim_init(&c, l, r, &err);
    claims_forget(l, r->partition);
    if (code == 0)
        code = claim_undo(&c, &err);
    if (code == 0)
        code = kv_remove(l->kv, lake_key_claim(&c.arena, r->partition), &err);
    if (code < 0)
        log_warn(l->o.log, "lake.claim_left", log_s("namespace", r->space),
                 log_z("error", err.text));
    arena_release(&c.arena);
}
