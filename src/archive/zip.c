/* A ZIP file as a reader: makes one entry at a time while it goes through the tree. */
#include "archive/zip.h"

#include "archive/tree.h"
#include "archive/zip_deflate.h"
#include "archive/zip_format.h"
#include "base/hex.h"
#include "os/file.h"
#include "os/scratch.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    ZIP_SPOOL = 64 * 1024, /* bytes of the directory that are written to scratch at once */
    /* Most tags that may lie between the tip and the commit, each naming the next. */
    ZIP_TAGS_MAX = 8,
    ZLIB_HEAD = 2,              /* bytes of the zlib stream before the deflated data */
    ZLIB_FRAME = ZLIB_HEAD + 4, /* these bytes and the 4 bytes after the data */
};

const struct zip_limits zip_usual_limits = {ZIP_DEPTH_MAX, ZIP_FILES_MAX, ZIP_BYTES_MAX,
                                            ZIP_TREE_MAX};

/* The mode of Unix that an entry has in the ZIP file, by the kind of the entry. */
static const unsigned zip_modes[] = {
    [TREE_FILE] = 0100644,   [TREE_PROGRAM] = 0100755,   [TREE_LINK] = 0120777,
    [TREE_FOLDER] = 0040755, [TREE_SUBMODULE] = 0040755,
};

/* A folder that the walk has entered and not finished. */
struct zip_level {
    struct packed_object tree;
    size_t at;       /* offset of the next entry in the tree */
    size_t path_len; /* bytes of the folder's path, with its slash */
};

enum zip_state { ZIP_WALKS, ZIP_LISTS, ZIP_ENDS, ZIP_DONE };

struct zip {
    struct reader reader;
    struct zip_options o;
    struct packed *packed;
    struct zip_deflater *deflater;
    char commit[2 * GIT_ID_MAX + 1];
    int64_t time_s;
    size_t top_len; /* bytes of the top folder's path */

    VEC(struct zip_level) levels;
    struct buf path;
    enum zip_state state;
    struct zip_result count;
    uint64_t entries;

    /* The rows of the central directory that were made so far. The directory comes at the end of
     * the ZIP file; until then its rows are in a scratch file. */
    int spool_fd;
    struct buf spool; /* rows that are not in the scratch file yet */
    uint64_t spool_len;

    /* Bytes that were made and not read yet, in this order: `out`, `held`, then the range of the
     * pack's file. */
    struct buf out;
    size_t out_at;
    struct str held; /* borrowed from the packed objects or the deflater */
    size_t given;    /* bytes of `held` that were read since their memory was dropped */
    struct file_range range;
};

/* --- entries --- */

static int zip_spool_flush(struct zip *z, struct err *err)
{
    int code = buf_error(&z->spool);

    if (code < 0)
        return err_code(err, code);
    code = file_write_all(z->spool_fd, z->spool.p, z->spool.len, err);
    z->spool_len += z->spool.len;
    buf_reset(&z->spool);
    return code;
}

/* Begins an entry whose name is z->path: writes its header, and its row of the directory. */
static int zip_begin(struct zip *z, struct zip_entry *e, struct err *err)
{
    if (z->entries == z->o.limits.files)
        return err_set(err, ERR_TOO_LARGE, "the tree has more than %" PRIu64 " files",
                       z->o.limits.files);
    if (buf_error(&z->path) < 0)
        return err_set(err, ERR_TOO_LARGE, "the tree has a path of more than %d bytes",
                       ZIP_NAME_MAX);
    e->name = buf_str(&z->path);
    e->time_s = z->time_s;
    e->at = z->count.size;
    z->entries++;
    zip_local_header(&z->out, e);
    zip_directory_row(&z->spool, e);
    z->count.size += z->out.len + e->stored;
    if (z->spool_len + z->spool.len > z->o.pack.pack)
        return err_set(err, ERR_TOO_LARGE, "the names of the tree have more than %" PRIu64 " bytes",
                       z->o.pack.pack);
    return z->spool.len >= ZIP_SPOOL ? zip_spool_flush(z, err) : 0;
}

static int zip_folder(struct zip *z, enum tree_kind kind, struct err *err)
{
    struct zip_entry e = {.mode = zip_modes[kind], .method = ZIP_STORED};

    buf_append_char(&z->path, '/');
    return zip_begin(z, &e, err);
}

/* Finds an object that the tree names. */
static int zip_find(struct zip *z, const unsigned char *id, enum pack_type type,
                    struct packed_object *out, struct err *err)
{
    int code = packed_find(out, z->packed, id, err);

    if (code == ERR_NOT_FOUND || (code == 0 && out->type != type))
        return err_set(err, ERR_PARSE, "the pack does not have an object that the tree names");
    return code;
}

static int zip_show(struct zip *z, const struct packed_object *blob, struct err *err)
{
    const struct zip_watch *w = z->o.watch;
    struct str data;

    if (!w || blob->size > w->max)
        return 0;
    int code = packed_read(z->packed, blob, w->max, &data, err);
    return code < 0 ? code : w->file(w->ctx, str_skip(buf_str(&z->path), z->top_len), data, err);
}

/* Copies the data of an object that the pack has in deflated form, without the frame of zlib. */
static int zip_copy(struct zip *z, const struct packed_object *blob, struct zip_entry *e,
                    struct err *err)
{
    e->method = ZIP_DEFLATED;
    e->stored = blob->zlib_len - ZLIB_FRAME;
    z->range = (struct file_range){
        .fd = packed_fd(z->packed), .offset = (off_t)(blob->zlib_at + ZLIB_HEAD), .len = e->stored};
    return zip_begin(z, e, err);
}

static void zip_drop(void *packed)
{
    packed_drop(packed);
}

static int zip_deflate(struct zip *z, const struct packed_object *blob, struct zip_entry *e,
                       struct err *err)
{
    struct str data = STR_EMPTY, deflated = STR_EMPTY;
    int code = packed_read(z->packed, blob, PACKED_DELTA_MAX, &data, err);

    if (code == 0)
        code = zip_deflater_run(z->deflater, data, zip_drop, z->packed, &deflated, err);
    if (code < 0)
        return code;
    bool smaller = deflated.len < data.len;
    e->method = smaller ? ZIP_DEFLATED : ZIP_STORED;
    z->held = smaller ? deflated : data;
    e->stored = z->held.len;
    return zip_begin(z, e, err);
}

static int zip_file(struct zip *z, const struct tree_entry *t, struct err *err)
{
    struct packed_object blob;
    int code = zip_find(z, t->id, PACK_BLOB, &blob, err);

    if (code == 0 && t->kind != TREE_LINK)
        code = zip_show(z, &blob, err);
    if (code < 0)
        return code;
    if (blob.size > z->o.limits.bytes - z->count.bytes)
        return err_set(err, ERR_TOO_LARGE, "the files have more than %" PRIu64 " bytes",
                       z->o.limits.bytes);
    z->count.bytes += blob.size;
    z->count.files += t->kind != TREE_LINK;
    z->count.links += t->kind == TREE_LINK;
    struct zip_entry e = {.mode = zip_modes[t->kind], .crc = blob.crc, .size = blob.size};
    return blob.is_whole ? zip_copy(z, &blob, &e, err) : zip_deflate(z, &blob, &e, err);
}

/* --- the walk --- */

/* Enters a folder whose path is z->path. */
static int zip_enter(struct zip *z, const unsigned char *tree, struct err *err)
{
    struct zip_level level = {.path_len = z->path.len};
    struct str data;

    if (z->levels.len == z->o.limits.depth)
        return err_set(err, ERR_TOO_LARGE, "the tree has more than %zu folders inside each other",
                       z->o.limits.depth);
    int code = zip_find(z, tree, PACK_TREE, &level.tree, err);
    if (code == 0)
        code = packed_read(z->packed, &level.tree, z->o.limits.tree, &data, err);
    if (code == 0)
        code = tree_check(data, z->o.is_sha256, err);
    if (code == 0)
        vec_push(&z->levels, level);
    return code;
}

static int zip_take_entry(struct zip *z, const struct tree_entry *t, struct err *err)
{
    int code;

    switch (t->kind) {
    case TREE_FOLDER:
        z->count.folders++;
        code = zip_folder(z, t->kind, err);
        return code < 0 ? code : zip_enter(z, t->id, err);
    case TREE_SUBMODULE:
        z->count.submodules++;
        return zip_folder(z, t->kind, err);
    default:
        return zip_file(z, t, err);
    }
}

/* Makes the next entry of the current folder. */
static int zip_walk(struct zip *z, struct err *err)
{
    struct zip_level *level = vec_last(&z->levels);
    unsigned char id[GIT_ID_MAX];
    struct tree_entry t;
    struct str tree;
    int code = packed_read(z->packed, &level->tree, z->o.limits.tree, &tree, err);

    if (code < 0)
        return code;
    struct str rest = str_skip(tree, level->at);
    code = tree_next(&rest, z->o.is_sha256, &t, err);
    if (code == ERR_END) {
        z->levels.len--;
        z->state = z->levels.len ? ZIP_WALKS : ZIP_LISTS;
        return 0;
    }
    if (code < 0)
        return code;
    level->at = tree.len - rest.len;
    if (!tree_name_ok(t.name)) {
        z->count.left_out++;
        return 0;
    }
    z->path.len = level->path_len;
    buf_append_str(&z->path, t.name);
    /* A copy, because reading a blob invalidates the tree's bytes. */
    memcpy(id, t.id, git_id_len(z->o.is_sha256));
    t.id = id;
    return zip_take_entry(z, &t, err);
}

/* Adds the directory, which is read from the scratch file, and the end record after it. */
static int zip_list(struct zip *z, struct err *err)
{
    int code = zip_spool_flush(z, err);

    z->range = (struct file_range){.fd = z->spool_fd, .offset = 0, .len = z->spool_len};
    z->state = ZIP_ENDS;
    return code;
}

static int zip_end(struct zip *z, struct err *err)
{
    struct zip_end e = {.entries = z->entries,
                        .directory_at = z->count.size,
                        .directory_len = z->spool_len,
                        .comment = str_z(z->commit)};

    (void)err;
    zip_end_record(&z->out, &e);
    z->count.size += z->spool_len + z->out.len;
    z->state = ZIP_DONE;
    return 0;
}

typedef int zip_step_fn(struct zip *z, struct err *err);

static zip_step_fn *const zip_steps[] = {
    [ZIP_WALKS] = zip_walk,
    [ZIP_LISTS] = zip_list,
    [ZIP_ENDS] = zip_end,
};

/* --- the reader --- */

static size_t zip_give(void *to, size_t len, struct str from)
{
    len = size_min(len, from.len);
    memcpy(to, from.p, len);
    return len;
}

static int zip_give_range(struct zip *z, void *to, size_t len, size_t *got, struct err *err)
{
    *got = (size_t)(z->range.len < len ? z->range.len : len);
    int code = file_pread_full(z->range.fd, to, *got, z->range.offset, err);

    z->range.offset += (off_t)*got;
    z->range.len -= *got;
    return code;
}

static int zip_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    struct zip *z = container_of(r, struct zip, reader);

    for (*got = 0; len;) {
        if (z->out_at < z->out.len) {
            *got = zip_give(to, len, str_skip(buf_str(&z->out), z->out_at));
            z->out_at += *got;
            return 0;
        }
        if (z->held.len) {
            *got = zip_give(to, len, z->held);
            z->held = str_skip(z->held, *got);
            z->given += *got;
            if (z->given >= SCRATCH_STEP) {
                z->given = 0;
                packed_drop(z->packed);
                zip_deflater_drop(z->deflater);
            }
            return 0;
        }
        if (z->range.len)
            return zip_give_range(z, to, len, got, err);
        if (z->state == ZIP_DONE)
            return 0;
        buf_reset(&z->out);
        z->out_at = 0;
        int code = zip_steps[z->state](z, err);
        if (code < 0)
            return code;
    }
    return 0;
}

static const struct reader_ops zip_reader_ops = {.read = zip_read};

/* --- the life of a ZIP file --- */

/* Finds the commit: the tip itself, or the commit that a tag at the tip names. */
static int zip_find_commit(struct zip *z, struct git_commit *out, struct err *err)
{
    unsigned char id[GIT_ID_MAX];
    struct packed_object object;
    struct str data = STR_EMPTY;
    int code = 0;

    memcpy(id, z->o.tip, sizeof(id));
    for (int i = 0; i < ZIP_TAGS_MAX && code == 0; i++) {
        code = packed_find(&object, z->packed, id, err);
        if (code == ERR_NOT_FOUND)
            return err_set(err, ERR_PARSE, "the pack does not have the commit");
        if (code == 0)
            code = packed_read(z->packed, &object, z->o.limits.bytes, &data, err);
        if (code < 0)
            return code;
        hex_write(z->commit, id, git_id_len(z->o.is_sha256));
        if (object.type == PACK_COMMIT)
            return git_commit_read(out, data, z->o.is_sha256, err);
        if (object.type != PACK_TAG)
            break;
        code = git_tag_read(id, data, z->o.is_sha256, err);
    }
    return code < 0 ? code : err_set(err, ERR_PARSE, "the branch does not lead to a commit");
}

static void zip_name_top(struct zip *z)
{
    buf_append_str(&z->path, z->o.repo);
    buf_append_char(&z->path, '-');
    for (size_t i = 0; i < z->o.branch.len; i++) {
        char c = z->o.branch.p[i];
        buf_append_char(&z->path, c == '/' || c == '\\' ? '-' : c);
    }
}

static int zip_begin_tree(struct zip *z, struct err *err)
{
    struct git_commit commit;
    int code = zip_find_commit(z, &commit, err);

    if (code < 0)
        return code;
    z->time_s = commit.time_s;
    zip_name_top(z);
    code = zip_folder(z, TREE_FOLDER, err);
    z->top_len = z->path.len;
    return code < 0 ? code : zip_enter(z, commit.tree, err);
}

int zip_open(struct zip **out, struct reader *pack, const struct zip_options *o, struct err *err)
{
    struct zip *z = xzalloc(sizeof(*z));
    struct packed_options p = {.is_sha256 = o->is_sha256,
                               .folder = o->folder,
                               .limits = o->pack,
                               .work_max = ZIP_WORK_MAX,
                               .cancel = o->cancel,
                               .hold = o->hold};

    *z = (struct zip){.reader.ops = &zip_reader_ops,
                      .o = *o,
                      .spool_fd = -1,
                      .path = BUF_INIT(ZIP_NAME_MAX),
                      .deflater = zip_deflater_new(o->folder)};
    int code = packed_open(&z->packed, pack, &p, err);
    if (code == 0)
        code = scratch_file(&z->spool_fd, o->folder, err);
    if (code == 0)
        code = zip_begin_tree(z, err);
    if (code < 0)
        zip_close(z);
    else
        *out = z;
    return code;
}

struct reader *zip_reader(struct zip *z)
{
    return &z->reader;
}

void zip_count(const struct zip *z, struct zip_result *out)
{
    *out = z->count;
}

void zip_close(struct zip *z)
{
    if (!z)
        return;
    packed_close(z->packed);
    zip_deflater_free(z->deflater);
    fd_close(&z->spool_fd);
    vec_release(&z->levels);
    buf_release(&z->path);
    buf_release(&z->spool);
    buf_release(&z->out);
    free(z);
}
