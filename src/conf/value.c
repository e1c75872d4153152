/* Converts the text of a value to its field in struct conf, by the type of the key, and back to a
 * text that may be shown. */
#include "conf/conf_int.h"
#include "base/clock.h"
#include "os/sock.h"

typedef int parse_fn(void *field, struct conf *c, const struct conf_key *key, struct str text);

static parse_fn parse_string, conf_parse_address, parse_url, conf_parse_database, parse_enum,
    conf_parse_bool, conf_parse_number;

static const struct type_row {
    const char *allowed;
    parse_fn *parse;
    int (*number)(struct str text, uint64_t *out);
} types[CONF_TYPE_COUNT] = {
    [CONF_STRING] = {"text", parse_string, NULL},
    [CONF_PATH] = {"a path", parse_string, NULL},
    [CONF_ADDRESS] = {"an address such as 127.0.0.1:9000, [::1]:9000, :9000 or unix:/path, or off",
                      conf_parse_address, NULL},
    [CONF_URL] = {"a URL", parse_url, NULL},
    [CONF_DATABASE] = {"a number", conf_parse_database, NULL},
    [CONF_ENUM] = {"one of", parse_enum, NULL},
    [CONF_BOOL] = {"true or false", conf_parse_bool, NULL},
    [CONF_INTEGER] = {"a whole number", conf_parse_number, str_u64},
    [CONF_SIZE] = {"a size such as 64KiB or 16MiB", conf_parse_number, str_size},
    [CONF_DURATION] = {"a duration such as 500ms, 30s or 5m", conf_parse_number, str_duration_ms},
};

enum { DEFAULT_MAX_LENGTH = 4096, QUOTE_MAX = 80 };

static bool has_control(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.p[i] < 0x20 || text.p[i] == 0x7f)
            return true;
    return false;
}

int conf_value_set(struct conf *c, const struct conf_key *key, struct str text, struct err *err)
{
    struct buf allowed = BUF_INIT(1024), masked = BUF_INIT(CONF_MAX_FILE), shown = BUF_INIT(1024);
    bool empty_ok = text.len > 0 || (key->flags & CONF_OPTIONAL);
    int code = ERR_INVALID;

    if (empty_ok && !has_control(text))
        code = types[key->type].parse((char *)c + key->offset, c, key, text);
    if (code < 0) {
        conf_key_allowed(key, &allowed);
        conf_value_mask(key, text, &masked);
        conf_quote(&shown, buf_str(&masked));
        if (key->flags & CONF_SECRET)
            err_set(err, ERR_INVALID, "must be %s", allowed.p);
        else
            err_set(err, ERR_INVALID, "must be %s; it is %s", allowed.p, shown.p);
    }
    buf_release(&allowed);
    buf_release(&masked);
    buf_release(&shown);
    return code < 0 ? ERR_INVALID : 0;
}

/* --- parsing --- */

static int parse_string(void *field, struct conf *c, const struct conf_key *key, struct str text)
{
    size_t max = key->max ? key->max : DEFAULT_MAX_LENGTH;
    char *copy;

    if (text.len > max || (text.len > 0 && text.len < key->min) || !str_is_utf8(text))
        return ERR_INVALID;
    copy = arena_z(&c->arena, text);
    if (!copy)
        return ERR_NO_MEMORY;
    *(const char **)field = copy;
    return 0;
}

static int conf_parse_address(void *field, struct conf *c, const struct conf_key *key,
                              struct str text)
{
    struct sock_addr address;

    if (str_eq(text, STR("off")))
        return parse_string(field, c, key, STR(""));
    if (sock_addr_parse(&address, text, NULL) < 0)
        return ERR_INVALID;
    return parse_string(field, c, key, text);
}

static int parse_url(void *field, struct conf *c, const struct conf_key *key, struct str text)
{
    ptrdiff_t at = str_find(text, STR("://"));

    if (text.len == 0 && key->flags & CONF_OPTIONAL)
        return parse_string(field, c, key, text);
    if (at < 0 || str_chr(text, ' ') >= 0 || text.len == (size_t)at + 3)
        return ERR_INVALID;
    for (const char *const *scheme = key->choices; *scheme; scheme++)
        if (str_eq(str_head(text, (size_t)at), str_z(*scheme)))
            return parse_string(field, c, key, text);
    return ERR_INVALID;
}

static int conf_parse_database(void *field, struct conf *c, const struct conf_key *key,
                               struct str text)
{
    struct conf_key plain = *key;
    uint64_t number;

    plain.max = 0; /* key->max bounds the number and not the length of the text */
    if (str_u64(text, &number) < 0)
        return parse_url(field, c, &plain, text);
    if (number > key->max)
        return ERR_INVALID;
    return parse_string(field, c, &plain, text);
}

static int parse_enum(void *field, struct conf *c, const struct conf_key *key, struct str text)
{
    for (int i = 0; key->choices[i]; i++) {
        if (!str_eq(text, str_z(key->choices[i])))
            continue;
        *(int *)field = i;
        return 0;
    }
    return ERR_INVALID;
}

static int conf_parse_bool(void *field, struct conf *c, const struct conf_key *key, struct str text)
{
    if (!str_eq(text, STR("true")) && !str_eq(text, STR("false")))
        return ERR_INVALID;
    *(bool *)field = str_eq(text, STR("true"));
    return 0;
}

static int conf_parse_number(void *field, struct conf *c, const struct conf_key *key,
                             struct str text)
{
    uint64_t number;

    if (types[key->type].number(text, &number) < 0 || number < key->min || number > key->max)
        return ERR_INVALID;
    *(uint64_t *)field = number;
    return 0;
}

/* --- showing --- */

struct unit {
    const char *name;
    uint64_t factor;
};

/* Appends a number in the largest unit that divides it. */
static void append_number(struct buf *out, enum conf_type type, uint64_t number)
{
    static const struct unit sizes[] = {{"TiB", 1024 * GIB}, {"GiB", GIB}, {"MiB", MIB},
                                        {"KiB", KIB},        {"", 1},      {NULL, 0}};
    static const struct unit durations[] = {
        {"h", MS_PER_HOUR}, {"m", MS_PER_MINUTE}, {"s", MS_PER_S}, {"ms", 1}, {NULL, 0}};
    static const struct unit plain[] = {{"", 1}, {NULL, 0}};
    const struct unit *unit = type == CONF_SIZE ? sizes : type == CONF_DURATION ? durations : plain;

    while (unit[1].name && (number == 0 || number % unit->factor != 0))
        unit++;
    buf_append_u64(out, number / unit->factor);
    buf_append_z(out, unit->name);
}

static void append_choices(struct buf *out, const struct conf_key *key, const char *suffix)
{
    for (size_t i = 0; key->choices[i]; i++)
        buf_appendf(out, "%s%s%s",
                    i == 0                ? ""
                    : key->choices[i + 1] ? ", "
                                          : " or ",
                    key->choices[i], suffix);
}

void conf_key_allowed(const struct conf_key *key, struct buf *out)
{
    const struct type_row *type = &types[key->type];

    buf_append_z(out, type->allowed);
    if (key->type == CONF_ENUM) {
        buf_append_char(out, ' ');
        append_choices(out, key, "");
    } else if (key->type == CONF_STRING && key->max) {
        buf_appendf(out, " of %ju to %ju characters", (uintmax_t)key->min, (uintmax_t)key->max);
    } else if (type->number || key->type == CONF_DATABASE) {
        /* The text for sizes and durations ends with examples, so the bounds need a comma before
         * them. */
        bool examples = key->type == CONF_SIZE || key->type == CONF_DURATION;
        buf_append_z(out, examples ? ", from " : " from ");
        append_number(out, key->type, key->min);
        buf_append_z(out, " to ");
        append_number(out, key->type, key->max);
    }
    if (key->type == CONF_DATABASE)
        buf_append_z(out, ", or a URL");
    if (key->type == CONF_URL || key->type == CONF_DATABASE) {
        buf_append_z(out, " that begins with ");
        append_choices(out, key, "://");
    }
}

/* Appends a URL, with *** in the place of the password in user:password@. Also masks a text that is
 * not exactly a URL, because masking too much is better than showing a password. */
static void mask_login(struct str text, struct buf *out)
{
    ptrdiff_t scheme = str_find(text, STR("://"));
    struct str rest = str_skip(text, scheme < 0 ? 0 : (size_t)scheme + 3);
    ptrdiff_t colon = str_chr(rest, ':'), at = -1;

    for (size_t i = 0; i < rest.len; i++)
        if (rest.p[i] == '@')
            at = (ptrdiff_t)i;
    if (at < 0 || colon < 0 || colon > at) {
        buf_append_str(out, text);
        return;
    }
    buf_append_str(out, str_head(text, text.len - rest.len + (size_t)colon + 1));
    buf_append_z(out, "***");
    buf_append_str(out, str_skip(rest, (size_t)at));
}

/* Appends a URL with its password masked, and with the password in ?sentinel_password=... masked.
 * If an '@' follows sentinel_password, it is not clear where that password ends, and only *** is
 * appended. */
static void mask_url(struct str text, struct buf *out)
{
    static const struct str mark = STR("sentinel_password=");
    ptrdiff_t at = str_find(text, mark);
    struct str rest = at < 0 ? STR_EMPTY : str_skip(text, (size_t)at), secret;

    if (str_chr(rest, '@') >= 0) {
        buf_append_z(out, "***");
        return;
    }
    mask_login(str_head(text, text.len - rest.len), out);
    while (rest.len && str_starts(rest, mark)) {
        bool more = str_cut(rest, '&', &secret, &rest);
        buf_append_z(out, more ? "sentinel_password=***&" : "sentinel_password=***");
        at = str_find(rest, mark);
        buf_append_str(out, at < 0 ? rest : str_head(rest, (size_t)at));
        rest = at < 0 ? STR_EMPTY : str_skip(rest, (size_t)at);
    }
}

void conf_value_mask(const struct conf_key *key, struct str text, struct buf *out)
{
    if (key->flags & CONF_SECRET)
        buf_append_z(out, text.len ? "***" : "");
    else if (key->type == CONF_URL || key->type == CONF_DATABASE)
        mask_url(text, out);
    else
        buf_append_str(out, text);
}

void conf_quote(struct buf *out, struct str text)
{
    buf_append_char(out, '\'');
    for (size_t i = 0; i < text.len && i < QUOTE_MAX; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c < 0x20 || c == 0x7f)
            buf_appendf(out, "\\x%02x", c);
        else
            buf_append_char(out, (char)c);
    }
    buf_append_z(out, text.len > QUOTE_MAX ? "...'" : "'");
}
