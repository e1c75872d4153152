/* Refs of a git repository. */
#include "archive/refs.h"

#include "base/hex.h"
#include "object/digest.h"

#include <stdlib.h>

void git_refs_init(struct git_refs *r, bool is_sha256)
{
    *r = (struct git_refs){.is_sha256 = is_sha256, .arena = ARENA_INIT(GIT_REFS_BYTES_MAX)};
}

void git_refs_release(struct git_refs *r)
{
    vec_release(&r->list);
    arena_release(&r->arena);
    *r = (struct git_refs){0};
}

/* --- names --- */

/* Bytes that no ref may have: git-check-ref-format, rules 4, 5 and 10. */
static bool ref_byte_ok(unsigned char c)
{
    return c > ' ' && c != 127 && !strchr("~^:?*[\\", c);
}

static bool ref_part_ok(struct str part)
{
    return part.len > 0 && part.p[0] != '.' && !str_ends(part, STR(".lock"));
}

bool git_ref_name_ok(struct str name)
{
    struct str part, rest = name;
    bool more = true;

    if (name.len > GIT_REF_NAME_MAX || !str_starts(name, STR("refs/")) ||
        name.p[name.len - 1] == '.')
        return false;
    for (size_t i = 0; i < name.len; i++)
        if (!ref_byte_ok((unsigned char)name.p[i]))
            return false;
    while (more) {
        more = str_cut(rest, '/', &part, &rest);
        if (!ref_part_ok(part))
            return false;
    }
    return str_find(name, STR("..")) < 0 && str_find(name, STR("@{")) < 0;
}

bool git_ref_is_kept(struct str name)
{
    static const struct ref_rule {
        const char *prefix, *suffix;
    } left_out[] = {
        {"refs/pull/", "/merge"}, {"refs/merge-requests/", "/merge"},
        {"refs/pipelines/", ""},  {"refs/keep-around/", ""},
        {"refs/weir/", ""},
    };

    if (str_eq(name, STR("refs/weir"))) /* git could not have it together with the refs below it */
        return false;

    for (size_t i = 0; i < ARRAY_SIZE(left_out); i++)
        if (str_starts(name, str_z(left_out[i].prefix)) &&
            str_ends(name, str_z(left_out[i].suffix)))
            return false;
    return true;
}

/* --- the list --- */

static int refs_check_memory(struct git_refs *r, struct err *err)
{
    size_t bytes = r->arena.used + r->list.len * sizeof(*r->list.items);

    if (bytes > GIT_REFS_SMALL && r->may_grow) {
        int (*ask)(void *, struct err *) = r->may_grow;
        r->may_grow = NULL;
        int code = ask(r->ctx, err);
        if (code < 0)
            return code;
    }
    return arena_error(&r->arena) < 0 || bytes > GIT_REFS_BYTES_MAX
               ? err_set(err, ERR_TOO_LARGE, "the refs take more than %d MiB of memory",
                         GIT_REFS_BYTES_MAX / (int)MIB)
               : 0;
}

int git_refs_add(struct git_refs *r, struct str id, struct str name, struct err *err)
{
    struct git_ref ref = {0};

    if (!hex_parse(id, ref.id, git_id_len(r->is_sha256)))
        return err_set(err, ERR_PARSE, "the list of refs has a line without the id of an object");
    if (++r->seen > GIT_REFS_MAX)
        return err_set(err, ERR_TOO_LARGE, "the repository has more than %d refs", GIT_REFS_MAX);
    if (str_eq(name, STR("HEAD"))) {
        r->has_head = true;
        memcpy(r->head, ref.id, sizeof(r->head));
        return 0;
    }
    if (!git_ref_name_ok(name) || !git_ref_is_kept(name)) {
        r->left_out++;
        return 0;
    }
    ref.name = arena_str(&r->arena, name);
    vec_push(&r->list, ref);
    return refs_check_memory(r, err);
}

void git_refs_set_head_target(struct git_refs *r, struct str target)
{
    if (git_ref_name_ok(target))
        r->head_target = arena_str(&r->arena, target);
}

static int ref_order(const void *a, const void *b)
{
    return str_cmp(((const struct git_ref *)a)->name, ((const struct git_ref *)b)->name);
}

int git_refs_sort(struct git_refs *r, struct err *err)
{
    if (r->list.len)
        qsort(r->list.items, r->list.len, sizeof(*r->list.items), ref_order);
    for (size_t i = 1; i < r->list.len; i++)
        if (str_eq(r->list.items[i - 1].name, r->list.items[i].name))
            return err_set(err, ERR_PARSE, "the list of refs has '" STR_FMT "' twice",
                           STR_ARG(r->list.items[i].name));
    return 0;
}

/* In a sorted list, a name is directly followed by all names that begin with it. So the function
 * keeps a stack of the names that are the beginning of the present name, and with it finds every
 * ref that is also a folder. */
void git_refs_leave_folders(struct git_refs *r)
{
    size_t above[GIT_REF_NAME_MAX + 1], depth = 0, kept = 0;
    struct git_ref *items = r->list.items;
    bool *is_folder = xzalloc(r->list.len + 1);

    for (size_t i = 0; i < r->list.len; i++) {
        struct str name = items[i].name;
        while (depth && !str_starts(name, items[above[depth - 1]].name))
            depth--;
        for (size_t k = 0; k < depth; k++)
            is_folder[above[k]] |= name.p[items[above[k]].name.len] == '/';
        above[depth++] = i;
    }
    for (size_t i = 0; i < r->list.len; i++)
        if (!is_folder[i])
            items[kept++] = items[i];
    free(is_folder);
    r->left_out += r->list.len - kept;
    r->list.len = kept;
}

const struct git_ref *git_refs_find(const struct git_refs *r, struct str name)
{
    struct git_ref wanted = {.name = name};

    return r->list.len ? bsearch(&wanted, r->list.items, r->list.len, sizeof(wanted), ref_order)
                       : NULL;
}

void git_refs_digest(char out[GIT_DIGEST_LEN + 1], const struct git_refs *r)
{
    struct digests *sum = digests_new(1u << DIGEST_SHA256);
    size_t id_len = git_id_len(r->is_sha256);
    struct digest_value value;
    char hex[2 * GIT_ID_MAX + 1];

    vec_each (&r->list, const struct git_ref *, ref) {
        hex_write(hex, ref->id, id_len);
        hex[2 * id_len] = ' ';
        digests_update(sum, str_n(hex, 2 * id_len + 1));
        digests_update(sum, ref->name);
        digests_update(sum, STR("\n"));
    }
    digests_update(sum, STR("HEAD "));
    digests_update(sum, r->head_target);
    digests_update(sum, STR("\n"));
    digests_final(sum, DIGEST_SHA256, &value);
    digests_free(sum);
    hex_write(out, value.bytes, value.len);
    out[GIT_DIGEST_LEN] = '\0';
}
