/* Texts for people, in the place of JSON objects in tables. */
#include "archive/commands/tell.h"

/* --- members --- */

static struct str tell_text(const json_t *object, const char *name)
{
    return json_get_str(object, name, STR_EMPTY);
}

static intmax_t tell_number(const json_t *object, const char *name)
{
    return (intmax_t)json_get_i64(object, name, 0);
}

/* Replaces a member by a text, and releases the buffer of the text. */
static void tell_replace(json_t *row, const char *name, struct buf *text)
{
    struct str s = buf_str(text);

    json_object_set_new(row, name, json_stringn(s.p ? s.p : "", s.len));
    buf_release(text);
}

void tell_error(json_t *row)
{
    const json_t *error = json_object_get(row, "error");
    struct buf text = {0};

    if (json_is_object(error))
        buf_appendf(&text, STR_FMT ": " STR_FMT, STR_ARG(tell_text(error, "code")),
                    STR_ARG(tell_text(error, "message")));
    tell_replace(row, "error", &text);
}

/* --- forges --- */

/* Appends ", <words><time>" if the object has this time. */
static void tell_time(struct buf *out, const json_t *object, const char *name, const char *words)
{
    struct str at = tell_text(object, name);

    if (at.len)
        buf_appendf(out, ", %s" STR_FMT, words, STR_ARG(at));
}

static void tell_remaining(struct buf *out, const json_t *object)
{
    intmax_t remaining = tell_number(object, "remaining");

    if (remaining < 0)
        buf_append_z(out, "requests left not known");
    else
        buf_appendf(out, "%jd requests left", remaining);
    if (remaining >= 0)
        tell_time(out, object, "reset", "more at ");
    tell_time(out, object, "rests_until", "rests until ");
}

void tell_tokens(json_t *row)
{
    const json_t *token;
    struct buf text = {0};
    size_t i;

    json_array_foreach(json_object_get(row, "tokens"), i, token)
    {
        struct str dead = tell_text(token, "dead_since");
        buf_appendf(&text, "%s" STR_FMT ": ", i ? "; " : "", STR_ARG(tell_text(token, "id")));
        if (dead.len)
            buf_appendf(&text, "dead since " STR_FMT, STR_ARG(dead));
        else
            tell_remaining(&text, token);
    }
    tell_replace(row, "tokens", &text);
}

/* --- the status --- */

static void tell_running(struct buf *out, const json_t *sync)
{
    buf_appendf(out, STR_FMT ": %jd of %jd repositories, %jd failed, %jd bytes, by " STR_FMT,
                STR_ARG(tell_text(sync, "account")), tell_number(sync, "done"),
                tell_number(sync, "repositories"), tell_number(sync, "failed"),
                tell_number(sync, "bytes"), STR_ARG(tell_text(sync, "worker")));
    tell_time(out, sync, "started", "since ");
}

static void tell_forge(struct buf *out, const json_t *forge)
{
    buf_appendf(out, STR_FMT ": %jd tokens, ", STR_ARG(tell_text(forge, "host")),
                tell_number(forge, "tokens"));
    tell_remaining(out, forge);
}

static void tell_satellite(struct buf *out, const json_t *satellite)
{
    buf_appendf(out, STR_FMT ": %s, %jd slots", STR_ARG(tell_text(satellite, "name")),
                json_get_bool(satellite, "up", false) ? "up" : "down",
                tell_number(satellite, "slots"));
    if (tell_number(satellite, "leaving"))
        buf_appendf(out, ", %jd leaving", tell_number(satellite, "leaving"));
}

static const struct status_list {
    const char *name;
    void (*tell)(struct buf *out, const json_t *item);
} status_lists[] = {
    {"running", tell_running}, {"forges", tell_forge}, {"satellites", tell_satellite}};

static void tell_list(struct output *table, const struct status_list *list, const json_t *items)
{
    const json_t *item;
    size_t i;

    json_array_foreach(items, i, item)
    {
        struct buf text = {0};
        list->tell(&text, item);
        output_cell(table, str_z(list->name));
        output_cell(table, buf_str(&text));
        buf_release(&text);
    }
}

void tell_status(struct output *table, const char *name, const json_t *value)
{
    for (size_t i = 0; i < ARRAY_SIZE(status_lists); i++)
        if (strcmp(status_lists[i].name, name) == 0) {
            tell_list(table, &status_lists[i], value);
            return;
        }
    output_cell(table, str_z(name));
    output_cellf(table, "%jd", (intmax_t)json_integer_value(value));
}
