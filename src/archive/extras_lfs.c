/* LFS objects of the default branch (the Batch API of git-lfs).
 *
 * The tree of HEAD is fetched with depth 1 and walked. An LFS pointer is a blob of less than 1 KiB
 * that names an object by its SHA-256. One request asks the server for the URLs of a hundred
 * objects. Each object is stored under its SHA-256, which is checked during the transfer. */
#include "archive/extras_int.h"
#include "archive/fetch.h"
#include "archive/link.h"
#include "archive/object.h"
#include "archive/tree.h"

#include "base/hex.h"
#include "base/json.h"
#include "http/client.h"
#include "http/hosts.h"
#include "sign/base64.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    LFS_ENTRIES_MAX = 500 * 1000,  /* most objects of the tree in git */
    LFS_FOLDERS_MAX = 1000 * 1000, /* most folders of a tree; one may be in several places */
    LFS_PENDING_MAX = 200 * 1000,  /* most folders that wait to be walked */
    LFS_OBJECTS_MAX = 200 * 1000,  /* most pointers of a tree */
    LFS_ANSWER_MAX = 4 * 1024 * 1024,
    LFS_OID_BYTES = 32,
};
#define LFS_TREE_MAX (16 * MIB)
#define LFS_TYPE     "application/vnd.git-lfs+json"

struct lfs_folder {
    unsigned char id[GIT_ID_MAX];
};

/* A pointer in the list of a tree. */
struct lfs_wanted {
    unsigned char oid[LFS_OID_BYTES];
    uint64_t size;
};

struct lfs_run {
    struct extras *x;
    struct git_remote *remote;
    struct forge_fault *fault;
    struct packed *packed;
    bool is_sha256;
    VEC(struct lfs_folder) folders; /* folders that are still to be walked */
    size_t walked;
    VEC(struct lfs_wanted) wanted;
    size_t lists_reached;                      /* bytes of the lists that x->hold has paid for */
    struct lfs_pointer batch[EXTRA_LFS_BATCH]; /* the objects of one request */
    /* For each object that was asked for: whether the answer has named it. */
    bool answered[EXTRA_LFS_BATCH];
    /* The error of the first object that the server did not deliver; 0: it delivered all. */
    int failed;
    struct forge_fault failed_fault;
    struct err failed_err;
};

/* --- pointers --- */

bool lfs_pointer_read(struct lfs_pointer *out, struct str text)
{
    struct str line, oid = STR_EMPTY, size = STR_EMPTY;
    unsigned char bytes[LFS_OID_BYTES];

    if (text.len >= EXTRA_POINTER_MAX ||
        !str_starts(text, STR("version https://git-lfs.github.com/spec/v1\n")))
        return false;
    while (text.len) {
        str_cut(text, '\n', &line, &text);
        if (str_starts(line, STR("oid sha256:")))
            oid = str_skip(line, STR("oid sha256:").len);
        else if (str_starts(line, STR("size ")))
            size = str_skip(line, STR("size ").len);
    }
    if (oid.len != 2 * LFS_OID_BYTES || !hex_parse(oid, bytes, sizeof(bytes)) ||
        str_u64(size, &out->size) < 0)
        return false;
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(out->oid + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

/* --- the tree --- */

static int lfs_count_lists(struct lfs_run *r, struct err *err)
{
    size_t bytes =
        r->wanted.len * sizeof(*r->wanted.items) + r->folders.len * sizeof(*r->folders.items);

    return large_reach(r->x->hold, &r->lists_reached, bytes, err);
}

static int lfs_look_at_blob(struct lfs_run *r, const struct tree_entry *e, struct err *err)
{
    struct packed_object object;
    struct lfs_pointer pointer;
    struct str data;
    unsigned char id[GIT_ID_MAX] = {0};

    memcpy(id, e->id, git_id_len(r->is_sha256));
    int code = packed_find(&object, r->packed, id, err);
    if (code < 0 || object.size >= EXTRA_POINTER_MAX)
        return code;
    code = packed_read(r->packed, &object, EXTRA_POINTER_MAX, &data, err);
    if (code < 0 || !lfs_pointer_read(&pointer, data))
        return code;
    if (r->wanted.len == LFS_OBJECTS_MAX)
        return err_set(err, ERR_TOO_LARGE, "the tree has more than %d LFS objects",
                       LFS_OBJECTS_MAX);
    struct lfs_wanted wanted = {.size = pointer.size};
    BUG_ON(!hex_parse(str_z(pointer.oid), wanted.oid, sizeof(wanted.oid)));
    vec_push(&r->wanted, wanted);
    return lfs_count_lists(r, err);
}

static int lfs_push_folder(struct lfs_run *r, const unsigned char *id, struct err *err)
{
    struct lfs_folder folder = {{0}};

    if (++r->walked > LFS_FOLDERS_MAX)
        return err_set(err, ERR_TOO_LARGE, "the tree has more than %d folders", LFS_FOLDERS_MAX);
    if (r->folders.len == LFS_PENDING_MAX)
        return err_set(err, ERR_TOO_LARGE, "the tree has more than %d folders in one place",
                       LFS_PENDING_MAX);
    memcpy(folder.id, id, git_id_len(r->is_sha256));
    vec_push(&r->folders, folder);
    return lfs_count_lists(r, err);
}

/* Examines the entries of one folder. The folder's bytes are copied first, because reading a blob
 * invalidates them. */
static int lfs_walk_folder(struct lfs_run *r, const struct lfs_folder *folder, struct err *err)
{
    struct packed_object object;
    struct buf tree = BUF_INIT(LFS_TREE_MAX);
    struct tree_entry e;
    struct str data = STR_EMPTY;
    int code = packed_find(&object, r->packed, folder->id, err);

    if (code == 0 && object.type != PACK_TREE)
        code = err_set(err, ERR_PARSE, "a folder is not a tree");
    if (code == 0)
        code = packed_read(r->packed, &object, LFS_TREE_MAX, &data, err);
    if (code == 0)
        code = extras_text(r->x, data.len, err);
    if (code < 0)
        return code;
    buf_append_str(&tree, data);
    data = buf_str(&tree);
    code = buf_error(&tree);
    while (code == 0 && (code = tree_next(&data, r->is_sha256, &e, err)) == 0) {
        if (e.kind == TREE_FOLDER)
            code = lfs_push_folder(r, e.id, err);
        else if (e.kind == TREE_FILE || e.kind == TREE_PROGRAM)
            code = lfs_look_at_blob(r, &e, err);
    }
    buf_release(&tree);
    return code == ERR_END ? 0 : code;
}

/* Finds the pointers below a commit. */
static int lfs_walk(struct lfs_run *r, const unsigned char *tip, struct err *err)
{
    struct packed_object object;
    struct git_commit commit;
    struct str data;
    int code = packed_find(&object, r->packed, tip, err);

    if (code == 0 && object.type != PACK_COMMIT)
        return 0; /* HEAD may lead to a tag of an object that is not a commit */
    if (code == 0)
        code = packed_read(r->packed, &object, MIB, &data, err);
    if (code == 0)
        code = git_commit_read(&commit, data, r->is_sha256, err);
    if (code == 0)
        code = lfs_push_folder(r, commit.tree, err);
    while (code == 0 && r->folders.len) {
        struct lfs_folder folder = vec_pop(&r->folders);
        code = lfs_walk_folder(r, &folder, err);
    }
    return code;
}

/* --- the question for a hundred objects --- */

struct lfs_body {
    struct buf text;
    struct extras *x;
    bool any; /* requests may go to any address, also to private ones */
};

static int lfs_take_body(void *ctx, struct str piece, struct err *err)
{
    struct lfs_body *body = ctx;
    int code = extras_text(body->x, body->text.len + piece.len, err);

    if (code < 0)
        return code;
    buf_append_str(&body->text, piece);
    return buf_error(&body->text) < 0 ? err_set(err, ERR_TOO_LARGE, "the answer is too large") : 0;
}

static bool lfs_may_connect(void *ctx, const struct sock_addr *addr)
{
    uint8_t ip[IP_LEN];

    return ((struct lfs_body *)ctx)->any || (ip_of(ip, addr) && ip_is_public(ip));
}

static void lfs_write_question(struct buf *out, const struct lfs_pointer *list, size_t count)
{
    struct json_out w;

    json_out_init(&w, out);
    json_out_open(&w, '{');
    json_out_member_str(&w, "operation", STR("download"));
    json_out_key(&w, "transfers");
    json_out_raw(&w, STR("[\"basic\"]"));
    json_out_key(&w, "objects");
    json_out_open(&w, '[');
    for (size_t i = 0; i < count; i++) {
        json_out_open(&w, '{');
        json_out_member_str(&w, "oid", str_z(list[i].oid));
        json_out_member_u64(&w, "size", list[i].size);
        json_out_close(&w, '}');
    }
    json_out_close(&w, ']');
    json_out_close(&w, '}');
}

/* The URL of the batch API. It is on the forge's own origin, because the repository's URL is. */
static const char *lfs_url(struct lfs_run *r)
{
    struct str url = git_remote_url(r->remote);
    bool named = str_ends(url, STR(".git"));

    return arena_fmt(r->x->arena, STR_FMT "%s/info/lfs/objects/batch", STR_ARG(url),
                     named ? "" : ".git")
        .p;
}

static int lfs_judge(struct lfs_run *r, int status, struct err *err)
{
    r->fault->http_status = status;
    if (status == 200)
        return 0;
    if (status == 404 || status == 410 || status == 501)
        return forge_fail(r->fault, ARCHIVE_GONE, err, "the server has no LFS: it answers %d",
                          status);
    return forge_fail(r->fault, extras_status_code(status), err, "the LFS server answers %d",
                      status);
}

/* Sends the request. `auth` is the value of Authorization, or empty for none. */
static int lfs_send(struct lfs_run *r, struct str question, struct str auth, struct lfs_body *body,
                    struct err *err)
{
    const struct http_header headers[] = {{STR("Accept"), STR(LFS_TYPE)},
                                          {STR("Content-Type"), STR(LFS_TYPE)},
                                          {STR("Authorization"), auth}};
    const char *url = lfs_url(r);
    struct client_request q = {.method = "POST",
                               .url = url,
                               .headers = headers,
                               .header_count = auth.len ? 3 : 2,
                               .body = question,
                               .on_body = lfs_take_body,
                               .may_connect = lfs_may_connect,
                               .ctx = body,
                               .repeatable = true,
                               .no_redirect = true,
                               .cancel = r->x->cancel};
    struct client_response response;
    const struct forge *f = forge_session_forge(r->x->session);

    if (!url || !link_same_origin(str_z(url), f->git))
        return forge_fail(r->fault, ARCHIVE_REDIRECT, err, "the LFS server is on another host");
    int code = client_call(r->x->client, r->x->arena, &response, &q, err);
    if (code == ERR_CANCELED)
        return code;
    if (code < 0) {
        struct err why = *err;
        enum archive_code outcome = code == ERR_TIMEOUT     ? ARCHIVE_TIMEOUT
                                    : code == ERR_TOO_LARGE ? ARCHIVE_PROTOCOL
                                    : code == ERR_DENIED    ? ARCHIVE_REDIRECT
                                                            : ARCHIVE_HTTP_5XX;
        return forge_fail(r->fault, outcome, err, "%s", why.text);
    }
    return lfs_judge(r, response.status, err);
}

/* Asks the server for the URLs of the objects. */
static int lfs_ask(struct lfs_run *r, size_t count, struct lfs_body *body, struct err *err)
{
    struct buf question = {0}, plain = {0}, auth = {0};
    struct str user, token;

    forge_git_auth(r->x->session, &user, &token);
    if (token.len) {
        buf_appendf(&plain, STR_FMT ":" STR_FMT, STR_ARG(user), STR_ARG(token));
        buf_append_z(&auth, "Basic ");
        base64_encode(&auth, buf_str(&plain));
    }
    lfs_write_question(&question, r->batch, count);
    int code = lfs_send(r, buf_str(&question), buf_str(&auth), body, err);
    if (plain.p)
        secure_zero(plain.p, plain.cap);
    if (auth.p)
        secure_zero(auth.p, auth.cap);
    buf_release(&plain);
    buf_release(&auth);
    buf_release(&question);
    return code;
}

/* --- the answer --- */

/* Reads the headers that, as the server says, the request for an object must have. Leaves out
 * headers that frame an HTTP message (such as Content-Length). */
static void lfs_read_headers(struct scan *s, struct arena *a, struct lfs_item *out)
{
    static const char *const own[] = {"host", "content-length", "transfer-encoding", "connection"};
    char key[64];

    scan_open(s, '{');
    while (scan_key(s, key, sizeof(key))) {
        struct str value = STR_EMPTY;
        bool framing = !key[0];
        scan_string(s, a, 4096, &value);
        for (size_t i = 0; i < ARRAY_SIZE(own); i++)
            framing |= str_ieq(str_z(key), str_z(own[i]));
        if (s->wrong || framing || out->header_count == LFS_HEADERS_MAX ||
            !http_field_is_valid(str_z(key), value))
            continue;
        out->headers[out->header_count++] = (struct http_header){arena_str(a, str_z(key)), value};
    }
}

static void lfs_read_download(struct scan *s, struct arena *a, struct lfs_item *out)
{
    char key[16];

    scan_open(s, '{');
    while (scan_key(s, key, sizeof(key)))
        if (strcmp(key, "href") == 0)
            scan_string(s, a, 4 * FORGE_URL_MAX, &out->href);
        else if (strcmp(key, "header") == 0 && scan_peek(s) == SCAN_OBJECT)
            lfs_read_headers(s, a, out);
        else
            scan_skip(s, NULL);
}

static void lfs_read_error(struct scan *s, struct lfs_item *out)
{
    char key[16];

    scan_open(s, '{');
    while (scan_key(s, key, sizeof(key)))
        if (strcmp(key, "code") == 0)
            scan_integer(s, &out->error);
        else
            scan_skip(s, NULL);
    if (out->error < 400 || out->error > 599)
        out->error = 500;
}

static void lfs_read_item(struct scan *s, struct arena *a, struct lfs_item *out)
{
    char key[16];

    *out = (struct lfs_item){0};
    scan_open(s, '{');
    while (scan_key(s, key, sizeof(key))) {
        if (strcmp(key, "oid") == 0) {
            scan_string(s, a, 2 * LFS_OID_BYTES, &out->oid);
        } else if (strcmp(key, "actions") == 0 && scan_peek(s) == SCAN_OBJECT) {
            scan_open(s, '{');
            while (scan_key(s, key, sizeof(key)))
                if (strcmp(key, "download") == 0)
                    lfs_read_download(s, a, out);
                else
                    scan_skip(s, NULL);
        } else if (strcmp(key, "error") == 0 && scan_peek(s) == SCAN_OBJECT) {
            lfs_read_error(s, out);
        } else {
            scan_skip(s, NULL);
        }
    }
}

static struct str lfs_key(const struct extras *x, const char *oid)
{
    return extras_key(x, arena_fmt(x->arena, "lfs/%.2s/%.2s/%s", oid, oid + 2, oid));
}

/* Notes that the server did not deliver an object; only the first reason is kept. The other objects
 * are stored all the same, and the next sync asks for this commit's objects again. */
static void lfs_not_given(struct lfs_run *r, struct str oid, int64_t status)
{
    if (r->failed)
        return;
    if (status)
        r->failed = forge_fail(&r->failed_fault, extras_status_code((int)status), &r->failed_err,
                               "the LFS server answers %d for " STR_FMT, (int)status, STR_ARG(oid));
    else
        r->failed = forge_fail(&r->failed_fault, ARCHIVE_PROTOCOL, &r->failed_err,
                               "the LFS server says nothing of " STR_FMT, STR_ARG(oid));
    r->failed_fault.http_status = (int)status;
}

struct lfs_batch {
    struct lfs_run *r;
    size_t count; /* objects that were asked for, in r->batch */
};

/* Stores one object of the answer, unless weir did not ask for it. */
static int lfs_store(void *ctx, const struct lfs_item *item, struct err *err)
{
    struct lfs_run *r = ((struct lfs_batch *)ctx)->r;
    const struct lfs_pointer *list = r->batch;
    size_t count = ((struct lfs_batch *)ctx)->count;
    unsigned char sha256[LFS_OID_BYTES];
    size_t i = 0;

    while (i < count && !str_eq(str_z(list[i].oid), item->oid))
        i++;
    if (i == count)
        return 0;
    r->answered[i] = true;
    if (item->error == 404 || item->error == 410) {
        r->x->left_out++;
        log_info(r->x->log, "archive.lfs_absent", log_s("oid", item->oid));
        return 0;
    }
    if (item->error || !item->href.len) {
        lfs_not_given(r, item->oid, item->error);
        return 0;
    }
    BUG_ON(!hex_parse(item->oid, sha256, sizeof(sha256)));
    struct extras_file file = {.url = item->href,
                               .key = lfs_key(r->x, list[i].oid),
                               .size = list[i].size,
                               .sha256 = sha256,
                               .headers = item->headers,
                               .header_count = item->header_count};
    int code = extras_fetch_file(r->x, &file, r->fault, err);
    if (code == ERR_NOT_FOUND && r->fault->code == ARCHIVE_GONE) {
        r->x->left_out++;
        code = 0;
    }
    return code;
}

int lfs_each_item(struct str answer, struct arena *a, lfs_item_fn *each, void *ctx, bool *malformed,
                  struct err *err)
{
    struct scan s;
    char key[16];
    int code = 0;

    scan_init(&s, answer);
    scan_open(&s, '{');
    while (code == 0 && scan_key(&s, key, sizeof(key))) {
        if (strcmp(key, "objects") != 0 || scan_peek(&s) != SCAN_ARRAY) {
            scan_skip(&s, NULL);
            continue;
        }
        scan_open(&s, '[');
        while (code == 0 && scan_more(&s)) {
            struct lfs_item item;
            arena_reset(a);
            lfs_read_item(&s, a, &item);
            if (!s.wrong)
                code = each(ctx, &item, err);
        }
    }
    *malformed = code == 0 && scan_end(&s, err) < 0;
    return *malformed ? ERR_PARSE : code;
}

static int lfs_store_all(struct lfs_run *r, struct str answer, size_t count, struct err *err)
{
    struct arena own = ARENA_INIT(EXTRAS_FILE_ARENA), *outer = r->x->arena;
    struct lfs_batch batch = {r, count};
    bool malformed;

    r->x->arena = &own; /* memory for one object at a time; a tree may name many objects */
    memset(r->answered, 0, sizeof(r->answered));
    int code = lfs_each_item(answer, &own, lfs_store, &batch, &malformed, err);
    r->x->arena = outer;
    arena_release(&own);
    if (malformed)
        return forge_malformed(r->fault, ERR_PARSE, err);
    for (size_t i = 0; code == 0 && i < count; i++)
        if (!r->answered[i])
            lfs_not_given(r, str_z(r->batch[i].oid), 0);
    return code;
}

/* --- all objects --- */

static int lfs_order(const void *a, const void *b)
{
    return memcmp(((const struct lfs_wanted *)a)->oid, ((const struct lfs_wanted *)b)->oid,
                  LFS_OID_BYTES);
}

static struct lfs_pointer lfs_pointer_of(const struct lfs_wanted *w)
{
    struct lfs_pointer p = {.size = w->size};

    hex_write(p.oid, w->oid, sizeof(w->oid));
    return p;
}

/* Removes from the list the objects that are stored already, and repetitions. */
static int lfs_leave_stored(struct lfs_run *r, struct err *err)
{
    struct arena own = ARENA_INIT(EXTRAS_FILE_ARENA), *outer = r->x->arena;
    unsigned char last[LFS_OID_BYTES] = {0};
    size_t kept = 0;
    int code = 0;

    r->x->arena = &own;
    if (r->wanted.len)
        qsort(r->wanted.items, r->wanted.len, sizeof(*r->wanted.items), lfs_order);
    for (size_t i = 0; code == 0 && i < r->wanted.len; i++) {
        struct lfs_wanted w = r->wanted.items[i];
        struct lfs_pointer p = lfs_pointer_of(&w);
        struct object_info info;
        if (i && memcmp(w.oid, last, sizeof(last)) == 0)
            continue;
        memcpy(last, w.oid, sizeof(last));
        arena_reset(&own);
        code = shelf_head(r->x->shelf, r->x->arena, lfs_key(r->x, p.oid), &info, err);
        if (code == ERR_NOT_FOUND || (code == 0 && info.size != p.size)) {
            r->wanted.items[kept++] = w;
            code = 0;
        }
    }
    r->wanted.len = kept;
    r->x->arena = outer;
    arena_release(&own);
    return code < 0 ? extras_storage(r->fault, code, err) : 0;
}

static int lfs_fetch_all(struct lfs_run *r, struct err *err)
{
    int code = lfs_leave_stored(r, err);

    for (size_t i = 0; code == 0 && i < r->wanted.len; i += EXTRA_LFS_BATCH) {
        size_t count = size_min(EXTRA_LFS_BATCH, r->wanted.len - i);
        struct lfs_body body = {.x = r->x,
                                .any = forge_session_forge(r->x->session)->allow_private};
        for (size_t k = 0; k < count; k++)
            r->batch[k] = lfs_pointer_of(&r->wanted.items[i + k]);
        buf_init(&body.text, LFS_ANSWER_MAX);
        code = lfs_ask(r, count, &body, err);
        if (code == 0)
            code = lfs_store_all(r, buf_str(&body.text), count, err);
        else if (extras_is_absent(r->fault)) {
            r->x->left_out += r->wanted.len - i;
            buf_release(&body.text);
            code = 0;
            break;
        }
        buf_release(&body.text);
    }
    if (code == 0 && r->failed) {
        *r->fault = r->failed_fault;
        *err = r->failed_err;
        code = r->failed;
    }
    return code;
}

/* Fetches the tree of HEAD into a scratch file. */
static int lfs_open_tree(struct lfs_run *r, const struct git_refs *refs, struct err *err)
{
    struct git_fetch f = {.wants = refs->head, .want_count = 1, .depth = 1};
    struct packed_options o = {.is_sha256 = refs->is_sha256,
                               .folder = r->x->scratch,
                               .limits = {.pack = r->x->scratch_max,
                                          .object = 2 * r->x->scratch_max,
                                          .inflated = 8 * r->x->scratch_max,
                                          .inflated_times = 200},
                               .work_max = 16 * r->x->scratch_max,
                               .entries_max = LFS_ENTRIES_MAX,
                               .hold = r->x->hold,
                               .cancel = r->x->cancel};
    struct fetch_fault fault = {0};
    struct reader *pack = NULL;
    int code = git_remote_fetch(r->remote, &f, &pack, &fault, err);

    if (code == 0) {
        code = packed_open(&r->packed, pack, &o, err);
        reader_close(pack);
        if (code < 0 && git_remote_fault(r->remote))
            fault = *git_remote_fault(r->remote);
    }
    if (code < 0 && code != ERR_CANCELED) {
        enum archive_code own = code == ERR_TOO_LARGE ? ARCHIVE_TOO_BIG : ARCHIVE_PROTOCOL;
        *r->fault = (struct forge_fault){.code = fault.code ? fault.code : own,
                                         .http_status = fault.http_status,
                                         .retry_after_s = fault.retry_after_s};
    }
    return code;
}

int extras_lfs(struct extras *x, struct git_remote *remote, struct extras_state *state,
               struct forge_fault *fault, struct err *err)
{
    const struct git_refs *refs = git_remote_refs(remote);
    struct lfs_run r = {.x = x, .remote = remote, .fault = fault, .is_sha256 = refs->is_sha256};
    int code;

    *fault = (struct forge_fault){0};
    if (!refs->has_head)
        return 0;
    struct str tip = arena_hex(x->arena, refs->head, git_id_len(refs->is_sha256));
    if (str_eq(tip, state->lfs))
        return 0;
    code = lfs_open_tree(&r, refs, err);
    if (code == 0) {
        code = lfs_walk(&r, refs->head, err);
        if (code < 0)
            fault->code = code == ERR_TOO_LARGE ? ARCHIVE_TOO_BIG : ARCHIVE_PROTOCOL;
    }
    packed_close(r.packed);
    if (code == 0)
        code = lfs_fetch_all(&r, err);
    if (code == 0 && !x->too_big[0])
        state->lfs = tip;
    vec_release(&r.folders);
    vec_release(&r.wanted);
    return code;
}
