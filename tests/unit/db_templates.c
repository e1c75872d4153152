/* Copies of new databases, and db_open() of tests. */
#include "unit/db_templates.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "db/db.h"
#include "os/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 512 };

static char templates_dir[PATH_SIZE / 2]; /* empty: there are no copies */

int __real_db_open(struct db **out, const struct db_options *o, struct err *err);
int __wrap_db_open(struct db **out, const struct db_options *o, struct err *err);

void db_templates_begin(const char *parent)
{
    snprintf(templates_dir, sizeof(templates_dir), "%s/weir-unit-dbs-XXXXXX", parent);
    if (!mkdtemp(templates_dir))
        templates_dir[0] = 0;
}

void db_templates_end(void)
{
    struct err err = {0};

    if (templates_dir[0])
        (void)!dir_remove_tree(templates_dir, &err);
}

void db_templates_leave(void)
{
    templates_dir[0] = 0;
}

static bool file_copy(const char *from, const char *to)
{
    struct stat st;
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = in >= 0 && fstat(in, &st) == 0 && S_ISREG(st.st_mode)
                  ? open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, st.st_mode & 0777)
                  : -1;
    ssize_t sent = out < 0 ? -1 : 1;

    while (sent > 0)
        sent = sendfile(out, in, NULL, (size_t)st.st_size + 1);
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    return sent == 0;
}

/* Copies the files of a folder into a folder that is there. */
static bool folder_copy(const char *from, const char *to)
{
    char source[2 * PATH_SIZE], target[2 * PATH_SIZE];
    DIR *dir = opendir(from);
    struct dirent *e;
    bool good = dir != NULL;

    while (good && (e = readdir(dir))) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(source, sizeof(source), "%s/%s", from, e->d_name);
        snprintf(target, sizeof(target), "%s/%s", to, e->d_name);
        good = file_copy(source, target);
    }
    if (dir)
        closedir(dir);
    return good;
}

/* The copy's folder, named after the families. */
static void template_path(char out[PATH_SIZE], const struct db_options *o)
{
    struct buf names = {0};

    for (size_t i = 0; i < o->cf_count; i++)
        buf_appendf(&names, "%s\n", o->cfs[i].name);
    snprintf(out, PATH_SIZE, "%s/%016llx", templates_dir,
             (unsigned long long)hash_xxh3(buf_str(&names), 0));
    buf_release(&names);
}

/* Creates an empty database and leaves it at `path`. Another test may be earlier. */
static void template_make(const char *path, const struct db_options *o)
{
    struct db_options own = {.cfs = o->cfs, .cf_count = o->cf_count, .reserve_bytes = 1};
    struct db *db = NULL;
    struct err err = {0};
    char made[PATH_SIZE + 16];

    snprintf(made, sizeof(made), "%s-%d", path, (int)getpid());
    own.path = made;
    if (__real_db_open(&db, &own, &err) == 0)
        db_close(db);
    if (!db || rename(made, path) != 0)
        (void)!dir_remove_tree(made, &err);
}

int __wrap_db_open(struct db **out, const struct db_options *o, struct err *err)
{
    struct err ignored = {0};
    char path[PATH_SIZE];

    if (templates_dir[0] && mkdir(o->path, 0700) == 0) {
        template_path(path, o);
        if (access(path, R_OK) != 0)
            template_make(path, o);
        if (!folder_copy(path, o->path))
            (void)!dir_remove_tree(o->path, &ignored);
    }
    return __real_db_open(out, o, err);
}
