/* Records of accounts: JSON lines, one at a time. */
#include "archive/record.h"

#include "base/clock.h"
#include "base/json.h"

enum { RECORD_ARENA_MAX = 512 * 1024 * 1024, RECORD_READ = 64 * 1024 };

void archive_record_init(struct archive_record *r)
{
    *r = (struct archive_record){.arena = ARENA_INIT(RECORD_ARENA_MAX)};
}

void archive_record_release(struct archive_record *r)
{
    vec_release(&r->pages);
    vec_release(&r->errors);
    vec_release(&r->repos);
    arena_release(&r->arena);
}

void archive_record_add_error(struct archive_record *r, const struct record_error *e)
{
    struct record_error copy = *e;

    copy.repo = arena_str(&r->arena, e->repo);
    copy.message = arena_str(&r->arena, str_head(e->message, ARCHIVE_MESSAGE_MAX));
    if (r->errors.len == RECORD_ERRORS_MAX)
        vec_remove(&r->errors, 0);
    vec_push(&r->errors, copy);
}

/* --- members of lines ---
 *
 * A table describes the members of a line: the name of each, its kind, and the place in the struct
 * for its value. A member that is absent leaves its place unchanged, which is 0. A member of
 * another kind than the table says is refused. */

enum member_kind {
    MEMBER_STR,
    MEMBER_U64,
    MEMBER_SIZE,
    MEMBER_EPOCH,
    MEMBER_TIME,
    MEMBER_CODE,
    MEMBER_BOOL,
    MEMBER_JSON
};

struct member_row {
    const char *name;
    enum member_kind kind;
    size_t at; /* offset in the struct */
};

#define MEMBER(kind, type, member)          #member, (kind), offsetof(struct type, member)
#define MEMBER_AS(name, kind, type, member) (name), (kind), offsetof(struct type, member)

static const struct member_row account_members[] = {
    {MEMBER(MEMBER_STR, record_account, login)},
    {MEMBER(MEMBER_STR, record_account, id)},
    {MEMBER(MEMBER_STR, record_account, type)},
    {MEMBER_AS("added", MEMBER_TIME, record_account, added_ms)},
    {MEMBER_AS("last_full_sync", MEMBER_TIME, record_account, last_full_sync_ms)},
    {MEMBER_AS("gists", MEMBER_TIME, record_account, gists_ms)},
    {MEMBER(MEMBER_STR, record_account, wants)},
    {MEMBER(MEMBER_U64, record_account, repos_listed)},
    {MEMBER(MEMBER_U64, record_account, repos_stored)},
    {MEMBER(MEMBER_U64, record_account, bytes)},
    {MEMBER(MEMBER_U64, record_account, fence)},
    {MEMBER(MEMBER_EPOCH, record_account, epoch)},
};

static const struct member_row page_members[] = {
    {MEMBER_AS("page", MEMBER_STR, record_page, url)},
    {MEMBER(MEMBER_STR, record_page, etag)},
    {MEMBER(MEMBER_SIZE, record_page, repos)},
};

static const struct member_row error_members[] = {
    {MEMBER_AS("error", MEMBER_TIME, record_error, at_ms)},
    {MEMBER(MEMBER_CODE, record_error, code)},
    {MEMBER(MEMBER_STR, record_error, repo)},
    {MEMBER(MEMBER_STR, record_error, message)},
};

static const struct member_row repo_members[] = {
    {MEMBER(MEMBER_STR, record_repo, name)},
    {MEMBER(MEMBER_STR, record_repo, id)},
    {MEMBER(MEMBER_CODE, record_repo, code)},
    {MEMBER(MEMBER_BOOL, record_repo, listed)},
    {MEMBER(MEMBER_STR, record_repo, pushed_at)},
    {MEMBER(MEMBER_STR, record_repo, refs_digest)},
    {MEMBER(MEMBER_STR, record_repo, etag)},
    {MEMBER(MEMBER_U64, record_repo, bytes)},
    {MEMBER_AS("updated", MEMBER_TIME, record_repo, updated_ms)},
    {MEMBER_AS("looked", MEMBER_TIME, record_repo, looked_ms)},
    {MEMBER(MEMBER_STR, record_repo, zip)},
    {MEMBER(MEMBER_STR, record_repo, url)},
    {MEMBER(MEMBER_JSON, record_repo, extra)},
};

static bool member_read_number(uint64_t *out, const json_t *v, uint64_t max)
{
    if (!json_is_integer(v) || json_integer_value(v) < 0 || (uint64_t)json_integer_value(v) > max)
        return false;
    *out = (uint64_t)json_integer_value(v);
    return true;
}

static struct str member_json(struct arena *a, const json_t *v)
{
    char *text = json_dumps(v, JSON_COMPACT);
    struct str copy = arena_str(a, str_z(text));

    free(text);
    return copy;
}

/* Stores a member's value. Returns false if the value is of another kind, or out of range. */
static bool member_read(void *to, enum member_kind kind, const json_t *v, struct arena *a)
{
    struct str text =
        json_is_string(v) ? str_n(json_string_value(v), json_string_length(v)) : STR_EMPTY;
    uint64_t number = 0;
    bool ok = false;

    switch (kind) {
    case MEMBER_STR:
        *(struct str *)to = arena_str(a, text);
        return json_is_string(v);
    case MEMBER_U64:
        return member_read_number(to, v, INT64_MAX);
    case MEMBER_SIZE:
        ok = member_read_number(&number, v, RECORD_REPOS_MAX);
        *(size_t *)to = (size_t)number;
        return ok;
    case MEMBER_EPOCH:
        ok = member_read_number(&number, v, UINT32_MAX);
        *(uint32_t *)to = (uint32_t)number;
        return ok;
    case MEMBER_TIME:
        return json_is_string(v) && clock_parse_iso(text, to) == 0;
    case MEMBER_CODE:
        return json_is_string(v) && archive_code_read(to, text) == 0;
    case MEMBER_BOOL:
        *(bool *)to = json_is_true(v);
        return json_is_boolean(v);
    case MEMBER_JSON:
        *(struct str *)to = member_json(a, v);
        return json_is_object(v);
    }
    return false;
}

static int members_read(void *to, const struct member_row *rows, size_t count, const json_t *line,
                        struct arena *a)
{
    for (size_t i = 0; i < count; i++) {
        const json_t *v = json_object_get(line, rows[i].name);
        if (v && !member_read((char *)to + rows[i].at, rows[i].kind, v, a))
            return ERR_CORRUPT;
    }
    return arena_error(a);
}

static void member_write_time(struct json_out *w, const char *name, int64_t ms)
{
    char text[CLOCK_ISO_LEN + 1];

    if (ms == 0)
        return;
    clock_iso(ms, text);
    json_out_member_str(w, name, str_z(text));
}

static void member_write_str(struct json_out *w, const char *name, struct str s)
{
    if (s.len)
        json_out_member_str(w, name, s);
}

static void member_write(struct json_out *w, const struct member_row *row, const void *from)
{
    switch (row->kind) {
    case MEMBER_STR:
        member_write_str(w, row->name, *(const struct str *)from);
        break;
    case MEMBER_U64:
        json_out_member_u64(w, row->name, *(const uint64_t *)from);
        break;
    case MEMBER_SIZE:
        json_out_member_u64(w, row->name, *(const size_t *)from);
        break;
    case MEMBER_EPOCH:
        json_out_member_u64(w, row->name, *(const uint32_t *)from);
        break;
    case MEMBER_TIME:
        member_write_time(w, row->name, *(const int64_t *)from);
        break;
    case MEMBER_CODE:
        json_out_member_str(w, row->name,
                            str_z(archive_codes[*(const enum archive_code *)from].name));
        break;
    case MEMBER_BOOL:
        json_out_member_bool(w, row->name, *(const bool *)from);
        break;
    case MEMBER_JSON:
        if (((const struct str *)from)->len) {
            json_out_key(w, row->name);
            json_out_raw(w, *(const struct str *)from);
        }
        break;
    }
}

static void members_write(struct json_out *w, const struct member_row *rows, size_t count,
                          const void *from)
{
    for (size_t i = 0; i < count; i++)
        member_write(w, &rows[i], (const char *)from + rows[i].at);
}

/* --- reading --- */

static int record_bad(struct err *err, size_t line, const char *what)
{
    return err_set(err, ERR_CORRUPT, "the record is damaged in line %zu: %s", line, what);
}

static int record_line_json(json_t **out, struct str line, size_t number, struct err *err)
{
    if (json_read(out, line, err) < 0)
        return record_bad(err, number, "it is not JSON");
    if (!json_is_object(*out)) {
        json_decref(*out);
        return record_bad(err, number, "it is not an object");
    }
    return 0;
}

static int record_head(struct record_account *out, struct arena *a, struct str line,
                       struct err *err)
{
    struct record_account c = {0};
    json_t *doc = NULL;
    int code = record_line_json(&doc, line, 1, err);

    if (code < 0)
        return code;
    if (json_get_i64(doc, "version", 0) > RECORD_VERSION)
        code = err_set(err, ERR_VERSION, "a newer weir has written this record");
    else if (members_read(&c, account_members, ARRAY_SIZE(account_members), doc, a) < 0 ||
             json_get_i64(doc, "version", 0) != RECORD_VERSION || c.login.len == 0)
        code = record_bad(err, 1, "it does not describe an account");
    json_decref(doc);
    if (code == 0)
        *out = c;
    return code;
}

int archive_record_read_head(struct record_account *out, struct arena *a, struct str head,
                             struct err *err)
{
    struct str line, rest;

    if (!str_cut(head, '\n', &line, &rest) || line.len > RECORD_HEAD_MAX)
        return record_bad(err, 1, "it has no end");
    return record_head(out, a, line, err);
}

static int record_add_page(struct archive_record *r, const json_t *doc, size_t number,
                           struct err *err)
{
    struct record_page p = {0};

    if (members_read(&p, page_members, ARRAY_SIZE(page_members), doc, &r->arena) < 0)
        return record_bad(err, number, "it does not describe a page");
    if (r->pages.len == RECORD_PAGES_MAX)
        return err_set(err, ERR_TOO_LARGE, "the record has too many pages");
    vec_push(&r->pages, p);
    return 0;
}

static int record_add_error_line(struct archive_record *r, const json_t *doc, size_t number,
                                 struct err *err)
{
    struct record_error e = {0};

    if (members_read(&e, error_members, ARRAY_SIZE(error_members), doc, &r->arena) < 0)
        return record_bad(err, number, "it does not describe an error");
    if (r->errors.len == RECORD_ERRORS_MAX)
        return err_set(err, ERR_TOO_LARGE, "the record has too many errors");
    vec_push(&r->errors, e);
    return 0;
}

static int record_add_repo(struct archive_record *r, const json_t *doc, size_t number,
                           struct err *err)
{
    struct record_repo p = {0};

    if (members_read(&p, repo_members, ARRAY_SIZE(repo_members), doc, &r->arena) < 0 ||
        p.name.len == 0)
        return record_bad(err, number, "it does not describe a repository");
    if (r->repos.len && p.listed && !vec_last(&r->repos)->listed)
        return record_bad(err, number, "a listed repository is behind one that is not");
    if (r->repos.len == RECORD_REPOS_MAX)
        return err_set(err, ERR_TOO_LARGE, "the record has too many repositories");
    vec_push(&r->repos, p);
    return 0;
}

static int record_line(struct archive_record *r, struct str line, size_t number, struct err *err)
{
    json_t *doc = NULL;
    int code;

    if (number == 1)
        return line.len <= RECORD_HEAD_MAX ? record_head(&r->account, &r->arena, line, err)
                                           : record_bad(err, 1, "it is too long");
    code = record_line_json(&doc, line, number, err);
    if (code < 0)
        return code;
    if (json_object_get(doc, "page"))
        code = record_add_page(r, doc, number, err);
    else if (json_object_get(doc, "error"))
        code = record_add_error_line(r, doc, number, err);
    else
        code = record_add_repo(r, doc, number, err);
    json_decref(doc);
    return code;
}

/* A page does not name its repositories, but only counts them. So the counts of all pages must add
 * up to the number of listed repositories. */
static int record_check_pages(const struct archive_record *r, struct err *err)
{
    size_t listed = 0, on_pages = 0;

    vec_each (&r->repos, const struct record_repo *, p)
        listed += p->listed;
    vec_each (&r->pages, const struct record_page *, p)
        on_pages += p->repos;
    return r->pages.len == 0 || listed == on_pages
               ? 0
               : err_set(err, ERR_CORRUPT,
                         "the record is damaged: its pages have %zu repositories, and %zu are "
                         "listed",
                         on_pages, listed);
}

/* Removes the complete lines from the beginning of `text` and reads them. */
static int record_lines(struct archive_record *r, struct buf *text, size_t *number, struct err *err)
{
    struct str rest = buf_str(text), line;
    int code = 0;

    while (code == 0 && str_chr(rest, '\n') >= 0) {
        str_cut(rest, '\n', &line, &rest);
        code = record_line(r, line, ++*number, err);
    }
    buf_consume(text, text->len - rest.len);
    return code == 0 && text->len > RECORD_LINE_MAX ? record_bad(err, *number + 1, "it is too long")
                                                    : code;
}

int archive_record_read(struct archive_record *r, struct reader *from, struct err *err)
{
    struct buf text = BUF_INIT(RECORD_READ + 2 * RECORD_LINE_MAX);
    size_t number = 0, got = 1;
    int code = 0;

    while (code == 0 && got) {
        code = reader_read(from, buf_reserve(&text, RECORD_READ), RECORD_READ, &got, err);
        if (code < 0)
            break;
        buf_commit(&text, got);
        code = record_lines(r, &text, &number, err);
    }
    if (code == 0 && (number == 0 || text.len))
        code = record_bad(err, number + 1, "it has no end");
    buf_release(&text);
    return code < 0 ? code : record_check_pages(r, err);
}

/* --- writing --- */

/* Appends line `at` of the record's text. Returns false if there is no such line. */
static bool record_write_line(struct buf *out, const struct archive_record *r, size_t at)
{
    struct json_out w;

    if (at > r->pages.len + r->errors.len + r->repos.len)
        return false;
    json_out_init(&w, out);
    json_out_open(&w, '{');
    if (at == 0) {
        json_out_member_u64(&w, "version", RECORD_VERSION);
        members_write(&w, account_members, ARRAY_SIZE(account_members), &r->account);
    } else if (at <= r->pages.len) {
        members_write(&w, page_members, ARRAY_SIZE(page_members), &r->pages.items[at - 1]);
    } else if (at <= r->pages.len + r->errors.len) {
        members_write(&w, error_members, ARRAY_SIZE(error_members),
                      &r->errors.items[at - 1 - r->pages.len]);
    } else {
        members_write(&w, repo_members, ARRAY_SIZE(repo_members),
                      &r->repos.items[at - 1 - r->pages.len - r->errors.len]);
    }
    json_out_close(&w, '}');
    buf_append_char(out, '\n');
    return true;
}

static int record_text_read(struct reader *reader, void *to, size_t len, size_t *got,
                            struct err *err)
{
    struct record_text *t = (struct record_text *)reader;

    (void)err;
    *got = 0;
    while (*got < len) {
        if (t->taken == t->line.len) {
            buf_reset(&t->line);
            t->taken = 0;
            if (!record_write_line(&t->line, t->record, t->at))
                break;
            t->at++;
        }
        size_t n = size_min(len - *got, t->line.len - t->taken);
        memcpy((char *)to + *got, t->line.p + t->taken, n);
        t->taken += n;
        *got += n;
    }
    return 0;
}

void archive_record_text_init(struct record_text *t, const struct archive_record *r)
{
    static const struct reader_ops ops = {.read = record_text_read};

    *t = (struct record_text){.reader = {&ops}, .record = r};
}

void archive_record_text_release(struct record_text *t)
{
    buf_release(&t->line);
}

uint64_t archive_record_text_size(const struct archive_record *r)
{
    struct buf line = {0};
    uint64_t size = 0;

    for (size_t at = 0; record_write_line(&line, r, at); at++) {
        size += line.len;
        buf_reset(&line);
    }
    buf_release(&line);
    return size;
}
