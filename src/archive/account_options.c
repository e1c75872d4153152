/* The options of one account (archive/account_options.h). */
#include "archive/account_options.h"

enum { OPTIONS_TEXT_MAX = 1024 };

static struct str options_key(const struct archive_account *c, struct arena *a)
{
    return archive_key(c, a, ARCHIVE_OPTIONS, STR_EMPTY);
}

int account_options_on(struct shelf *s, struct arena *a, const struct archive_account *c,
                       struct forge_wants *wants, bool *own, struct err *err)
{
    struct buf text = BUF_INIT(OPTIONS_TEXT_MAX);
    int code = shelf_read(s, a, options_key(c, a), OPTIONS_TEXT_MAX, &text, NULL, err);

    struct str line, rest;

    *own = code == 0;
    str_cut(buf_str(&text), '\n', &line, &rest);
    if (code == 0 && forge_wants_read(wants, str_trim(line), err) < 0)
        code = err_wrap(err, ERR_CORRUPT, "the options of the account");
    if (code == ERR_TOO_LARGE)
        code = err_set(err, ERR_CORRUPT, "the options of the account are too long");
    buf_release(&text);
    return code == ERR_NOT_FOUND ? 0 : code;
}

static int options_put(struct shelf *s, struct arena *a, const struct archive_account *c,
                       const struct forge_wants *wants, struct err *err)
{
    struct buf text = {0};

    forge_wants_write(&text, wants);
    buf_append_char(&text, '\n');
    int code =
        shelf_put_bytes(s, a, options_key(c, a), buf_str(&text), NULL, "text/plain", 0, NULL, err);
    buf_release(&text);
    return code;
}

int account_options_set(struct archive *x, const struct archive_account *c,
                        const struct forge_wants *wants, struct err *err)
{
    struct arena a = {0};
    struct shelf s = {0};
    int code = shelf_open(&s, x->satellites, &a, c, err);

    if (code == 0 && wants)
        code = options_put(&s, &a, c, wants, err);
    else if (code == 0)
        code = shelf_remove(&s, &a, options_key(c, &a), NULL, err);
    shelf_close(&s);
    arena_release(&a);
    return code;
}

int account_options_copy(struct archive *x, const struct archive_account *from,
                         const struct archive_account *to, struct err *err)
{
    struct arena a = {0};
    struct forge_wants wants;
    struct shelf s = {0};
    bool own = false;
    int code = shelf_open(&s, x->satellites, &a, from, err);

    if (code == 0)
        code = account_options_on(&s, &a, from, &wants, &own, err);
    shelf_close(&s);
    arena_release(&a);
    return code < 0 || !own ? code : account_options_set(x, to, &wants, err);
}
