/* Reads and writes the two files in which a data folder remembers the store: `installation` and
 * `installation.number`. */
#include "coord/installation_int.h"
#include "os/file.h"
#include "os/pages.h"

enum { FILE_MAX = 4096 };

static const char MAGIC[16] = "weir number 1";
static const struct str HEAD = {"weir installation 1\n", 20};

/* --- installation --- */

static bool remembered_read_text(char *out, size_t room, struct str value)
{
    if (value.len >= room)
        return false;
    memcpy(out, value.p, value.len);
    out[value.len] = '\0';
    return true;
}

static bool remembered_read_line(struct remembered *r, struct str line)
{
    struct str name, value;
    uint64_t number = 0;

    str_cut(line, '=', &name, &value);
    if (str_eq(name, STR("id")))
        return remembered_read_text(r->id, sizeof(r->id), value);
    if (str_eq(name, STR("folder")))
        return remembered_read_text(r->folder, sizeof(r->folder), value);
    if (str_eq(name, STR("run")))
        return remembered_read_text(r->run, sizeof(r->run), value);
    if (str_u64(value, &number) < 0)
        return false;
    if (str_eq(name, STR("clean")))
        r->clean = number == 1;
    else if (str_eq(name, STR("number")))
        r->number = number;
    else if (str_eq(name, STR("config")))
        r->config = number;
    return true;
}

int remembered_read(struct remembered *out, const char *path, struct err *err)
{
    struct buf text = BUF_INIT(FILE_MAX);
    struct remembered r = {0};
    int code = file_read(path, &text, err);
    struct str rest = buf_str(&text), line;
    bool good = code == 0 && str_starts(rest, HEAD);

    rest = str_skip(rest, good ? HEAD.len : 0);
    while (good && rest.len) {
        str_cut(rest, '\n', &line, &rest);
        good = remembered_read_line(&r, line);
    }
    if (code == 0 && (!good || !r.folder[0]))
        code = err_set(err, ERR_CORRUPT, "%s is not a file that weir has written", path);
    if (code == 0)
        *out = r;
    buf_release(&text);
    return code;
}

int remembered_write(const struct remembered *r, const char *path, struct err *err)
{
    struct buf text = BUF_INIT(FILE_MAX);

    buf_append_str(&text, HEAD);
    buf_appendf(&text, "id=%s\nfolder=%s\nrun=%s\nclean=%d\nnumber=%llu\nconfig=%llu\n", r->id,
                r->folder, r->run, r->clean, (unsigned long long)r->number,
                (unsigned long long)r->config);
    int code = file_write_durable(path, buf_str(&text), 0600, err);
    buf_release(&text);
    return code;
}

/* --- installation.number --- */

int number_page_open(struct number_page **out, const char *path, struct str boot, bool *kept,
                     struct err *err)
{
    void *memory = NULL;
    bool whole = false;
    int code = pages_map(&memory, path, sizeof(struct number_page), &whole, err);

    if (code < 0)
        return code;
    struct number_page *p = memory;
    *kept = whole && memcmp(p->magic, MAGIC, sizeof(MAGIC)) == 0 && boot.len &&
            str_eq(str_n(p->boot, strnlen(p->boot, BOOT_MAX)), boot);
    if (!*kept) {
        memset(p->magic, 0, sizeof(p->magic));
        atomic_store(&p->number, 0);
        memset(p->boot, 0, sizeof(p->boot));
        if (boot.len)
            memcpy(p->boot, boot.p, size_min(boot.len, BOOT_MAX));
        atomic_signal_fence(memory_order_seq_cst);
        memcpy(p->magic, MAGIC, sizeof(MAGIC));
    }
    *out = p;
    return 0;
}

void number_page_close(struct number_page *p)
{
    pages_free(p, sizeof(*p));
}
