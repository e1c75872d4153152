/* The state of a repository's options, and helpers for the files about options. */
#include "archive/extras.h"
#include "archive/extras_int.h"

#include "base/json.h"
#include "http/wire.h"

#include <string.h>

/* --- the state --- */

static const struct forge_field extras_state_rows[] = {
    {"issues", FORGE_FIELD_TEXT, offsetof(struct extras_state, issues)},
    {"pulls", FORGE_FIELD_TEXT, offsetof(struct extras_state, pulls)},
    {"releases", FORGE_FIELD_TEXT, offsetof(struct extras_state, releases)},
    {"lfs", FORGE_FIELD_TEXT, offsetof(struct extras_state, lfs)},
};
static const struct forge_fields extras_state_fields = FORGE_FIELDS(extras_state_rows);

void extras_state_read(struct extras_state *out, struct arena *a, struct str text)
{
    struct scan s;

    *out = (struct extras_state){0};
    if (!text.len || text.len > EXTRA_STATE_MAX)
        return;
    scan_init(&s, text);
    forge_read_object(&s, a, &extras_state_fields, out);
    if (scan_end(&s, NULL) < 0)
        *out = (struct extras_state){0};
}

void extras_state_write(struct buf *out, const struct extras_state *s)
{
    struct json_out w;

    json_out_init(&w, out);
    json_out_open(&w, '{');
    for (size_t i = 0; i < ARRAY_SIZE(extras_state_rows); i++) {
        const struct str *text =
            (const struct str *)((const char *)s + extras_state_rows[i].offset);
        if (text->len)
            json_out_member_str(&w, extras_state_rows[i].path, *text);
    }
    json_out_close(&w, '}');
}

/* --- helpers --- */

struct str extras_key(const struct extras *x, struct str what)
{
    struct str name = arena_fmt(x->arena, STR_FMT "@" STR_FMT, STR_ARG(x->repo), STR_ARG(what));

    return archive_key(x->account, x->arena, ARCHIVE_EXTRA, name);
}

struct str extras_path(const struct extras *x, const char *path, struct str id)
{
    const struct {
        const char *mark;
        struct str value;
    } marks[] = {{"{owner}", x->owner}, {"{repo}", x->repo}, {"{id}", id}};
    struct buf out = {0};

    while (*path) {
        size_t i = 0;
        while (i < ARRAY_SIZE(marks) && strncmp(path, marks[i].mark, strlen(marks[i].mark)) != 0)
            i++;
        if (i == ARRAY_SIZE(marks)) {
            buf_append_char(&out, *path++);
            continue;
        }
        url_encode(&out, marks[i].value, false);
        path += strlen(marks[i].mark);
    }
    struct str text = arena_str(x->arena, buf_str(&out));
    buf_release(&out);
    return text;
}

int extras_storage(struct forge_fault *fault, int code, struct err *err)
{
    fault->code = code == ERR_TOO_LARGE ? ARCHIVE_TOO_BIG : ARCHIVE_STORAGE;
    return err_wrap(err, code, "an option of the archive");
}

int extras_text(struct extras *x, size_t len, struct err *err)
{
    enum { SMALL = 64 * 1024 };

    return len > SMALL ? large_reach(x->hold, &x->text_reached, 2 * len, err) : 0;
}

enum archive_code extras_status_code(int status)
{
    if (status == 401 || status == 403)
        return ARCHIVE_AUTH;
    return status == 429 ? ARCHIVE_RATE : ARCHIVE_HTTP_5XX;
}

bool extras_is_absent(const struct forge_fault *fault)
{
    return fault->code == ARCHIVE_GONE;
}
