/* Files and folders: reads and writes whole files, replaces files durably, and locks them. Paths
 * are NUL-terminated. */
#ifndef OS_FILE_H
#define OS_FILE_H

#include "base/buf.h"
#include "base/err.h"

#include <sys/types.h>

int file_read(const char *path, struct buf *out, struct err *err) MUST_CHECK;

/* Replaces the file so that after a crash it holds either the old content or the new, never a mix.
 * The content is written to a temporary file in the same folder and synced. Then the temporary file
 * is renamed over the old file, and the folder is synced. */
int file_write_durable(const char *path, struct str content, mode_t mode,
                       struct err *err) MUST_CHECK;

/* Renames a file or folder, but does not replace an existing target (ERR_EXISTS). Then syncs the
 * folder in which `to` lies. */
int file_rename_new(const char *from, const char *to, struct err *err) MUST_CHECK;

/* The last steps of file_write_durable(), for content that is too large for memory. The caller has
 * written the file `from` in the folder of `to`, and synced it. This function renames `from` over
 * `to` and syncs the folder. */
int file_rename_over(const char *from, const char *to, struct err *err) MUST_CHECK;

int file_write_all(int fd, const void *p, size_t len, struct err *err) MUST_CHECK;
int file_pread_full(int fd, void *p, size_t len, off_t at, struct err *err) MUST_CHECK;
int file_sync(int fd, struct err *err) MUST_CHECK; /* by fdatasync() */
int dir_sync(const char *path, struct err *err) MUST_CHECK;
/* Makes the folder and its missing parents, and syncs the parent of each folder that it made. If
 * the folder exists already, this is not an error. */
int dir_make(const char *path, mode_t mode, struct err *err) MUST_CHECK;
/* Removes the folder with everything in it. If the folder does not exist, this is not an error.
 * Symbolic links are removed, not followed. */
int dir_remove_tree(const char *path, struct err *err) MUST_CHECK;

/* Sets the file's mode to 0600 when group or others have any access. The function is for files with
 * secrets. ERR_NOT_FOUND: there is no such file. */
int file_make_private(const char *path, struct err *err) MUST_CHECK;

bool file_exists(const char *path);
int file_free_space(const char *path, uint64_t *free_bytes, uint64_t *total_bytes,
                    struct err *err) MUST_CHECK;

/* Tests whether the folder's disk accepts writes: makes a file there, syncs it and removes it. */
int file_try_folder(const char *folder, struct err *err) MUST_CHECK;

/* Takes an exclusive advisory lock on the file `path`, which is made with mode 0600 when it does
 * not exist. The lock is held until *fd is closed. The text of ERR_IN_USE has the process id of the
 * holder when that can be read. */
int file_lock(int *fd, const char *path, struct err *err) MUST_CHECK;

void fd_close(int *fd); /* closes *fd if it is open (>= 0) and sets it to -1 */

#endif
