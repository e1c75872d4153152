/* Reads the JSON of forges by tables of fields. Fields that are in no table are skipped. */
#include "archive/forge_int.h"
#include "archive/link.h"
#include "archive/names.h"

#include <stdio.h>
#include <string.h>

enum { FORGE_KEY_MAX = 64, FORGE_ID_MAX = 31, FORGE_NEST_MAX = 3 };

const struct forge_kind_row *forge_row(enum forge_kind kind)
{
    static const struct forge_kind_row *const rows[FORGE_KINDS] = {
        [FORGE_GITHUB] = &forge_github,
        [FORGE_GITLAB] = &forge_gitlab,
        [FORGE_GITEA] = &forge_gitea,
    };

    return rows[kind];
}

/* --- fields --- */

/* An id is a number or a short word. It becomes part of object metadata and of paths. */
static void forge_read_id(struct scan *s, struct arena *a, struct str *out)
{
    struct str text = STR_EMPTY;

    if (scan_peek(s) == SCAN_STRING)
        scan_string(s, a, FORGE_ID_MAX, &text);
    else
        scan_skip(s, &text);
    bool good = text.len > 0 && text.len <= FORGE_ID_MAX;
    for (size_t i = 0; good && i < text.len; i++)
        good = strchr("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_",
                      text.p[i]) != NULL;
    if (good)
        *out = arena_str(a, text);
    else
        scan_fail(s, "an id is not a number or a word");
}

static void forge_read_number(struct scan *s, uint64_t *out)
{
    int64_t value = 0;

    scan_integer(s, &value);
    *out = value > 0 ? (uint64_t)value : 0;
}

/* Reads one value. A null leaves the member unchanged. */
static void forge_read_value(struct scan *s, struct arena *a, const struct forge_field *f,
                             void *out)
{
    void *at = (char *)out + f->offset;
    struct str text = STR_EMPTY;

    if (scan_peek(s) == SCAN_NULL) {
        scan_skip(s, NULL);
        return;
    }
    switch (f->kind) {
    case FORGE_FIELD_TEXT:
        if (scan_peek(s) == SCAN_STRING)
            scan_string(s, a, FORGE_TEXT_MAX, at);
        else
            scan_skip(s, NULL); /* GitLab's messages may be objects */
        break;
    case FORGE_FIELD_ID:
        forge_read_id(s, a, at);
        break;
    case FORGE_FIELD_NUMBER:
        forge_read_number(s, at);
        break;
    case FORGE_FIELD_BOOL:
        scan_bool(s, at);
        break;
    case FORGE_FIELD_IS_WORD:
    case FORGE_FIELD_IS_NOT:
        scan_string(s, a, FORGE_TEXT_MAX, &text);
        *(bool *)at = str_eq(text, str_z(f->word)) == (f->kind == FORGE_FIELD_IS_WORD);
        break;
    case FORGE_FIELD_THERE:
        scan_skip(s, NULL);
        *(bool *)at = true;
        break;
    }
}

static bool forge_has_below(const struct forge_fields *fields, const char *path)
{
    size_t len = strlen(path);

    for (size_t i = 0; i < fields->count; i++)
        if (strncmp(fields->rows[i].path, path, len) == 0 && fields->rows[i].path[len] == '.')
            return true;
    return false;
}

/* Reads the members of an object whose own path is `prefix`, which ends with a dot or is empty.
 * `seen` has a bit for each field, so that a field that comes twice is refused. */
/* NOLINTNEXTLINE(misc-no-recursion): at most FORGE_NEST_MAX deep */
static void forge_read_members(struct scan *s, struct arena *a, const struct forge_fields *fields,
                               const char *prefix, void *out, uint64_t *seen)
{
    char key[FORGE_KEY_MAX], path[FORGE_NEST_MAX * FORGE_KEY_MAX];

    scan_open(s, '{');
    while (scan_key(s, key, sizeof(key))) {
        size_t i = 0;
        snprintf(path, sizeof(path), "%s%s", prefix, key);
        while (i < fields->count && strcmp(fields->rows[i].path, path) != 0)
            i++;
        if (i < fields->count) {
            if (*seen & UINT64_C(1) << i)
                scan_fail(s, "a field is given twice");
            *seen |= UINT64_C(1) << i;
            forge_read_value(s, a, &fields->rows[i], out);
        } else if (scan_peek(s) == SCAN_OBJECT && key[0] && forge_has_below(fields, path) &&
                   strlen(prefix) < FORGE_KEY_MAX) {
            strncat(path, ".", sizeof(path) - strlen(path) - 1);
            forge_read_members(s, a, fields, path, out, seen);
        } else {
            scan_skip(s, NULL);
        }
    }
}

void forge_read_object(struct scan *s, struct arena *a, const struct forge_fields *fields,
                       void *out)
{
    uint64_t seen = 0;

    BUG_ON(fields->count > 64);
    forge_read_members(s, a, fields, "", out, &seen);
    for (size_t i = 0; i < fields->count; i++) {
        const struct str *text = (const struct str *)((char *)out + fields->rows[i].offset);
        if (fields->rows[i].required && !text->len)
            scan_fail(s, "a field that must be there is missing");
    }
}

/* --- repositories --- */

/* Decides from which URL the repository is fetched. If an administrator has given the base of git
 * URLs, the URL is made from that base. Otherwise the API's clone URL is used, which must be on the
 * forge's own origin. */
static void forge_judge_clone_url(struct forge_repo *r, struct arena *a, const struct forge *f)
{
    if (f->git_given || !r->clone_url.len)
        r->clone_url =
            arena_fmt(a, STR_FMT "/" STR_FMT ".git", STR_ARG(f->git), STR_ARG(r->full_name));
    r->foreign = r->clone_url.len > FORGE_URL_MAX || !link_same_origin(r->clone_url, f->git);
    if (r->foreign)
        r->clone_url = STR_EMPTY;
}

/* Whether the owner's name has the form of a login; it becomes part of URLs. */
static bool forge_owner_ok(struct str owner)
{
    struct str part;

    while (str_token(&owner, "/", &part))
        if (!archive_repo_ok(part))
            return false;
    return true;
}

int forge_read_repo(struct scan *s, struct arena *a, const struct forge *f,
                    const struct forge_kind_row *row, struct forge_repo *out)
{
    *out = (struct forge_repo){0};
    forge_read_object(s, a, &row->repo, out);
    if (!s->wrong && out->pushed_at.len > FORGE_TIME_MAX)
        scan_fail(s, "a time is too long");
    if (s->wrong)
        return 0;
    if (!archive_repo_ok(out->name) || !forge_owner_ok(out->owner))
        return ERR_INVALID;
    out->full_name = arena_fmt(a, STR_FMT "/" STR_FMT, STR_ARG(out->owner), STR_ARG(out->name));
    forge_judge_clone_url(out, a, f);
    return 0;
}
