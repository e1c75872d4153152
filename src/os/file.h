/* Files and folders: whole reads and writes, durable replacement, locks. Paths are terminated. */
#ifndef OS_FILE_H
#define OS_FILE_H

#include "base/buf.h"
#include "base/err.h"

#include <sys/types.h>

int file_read(const char *path, struct buf *out, struct err *err) MUST_CHECK;

/* Replace the file so that after a crash it holds the old content or the new, never a mix: written
 * to a temporary beside it, fsynced, renamed over it, folder fsynced. */
int file_write_durable(const char *path, struct str content, mode_t mode,
                       struct err *err) MUST_CHECK;

/* Rename a file or folder, never over something that is there (ERR_EXISTS); the folder that gets it
 * is fsynced. */
int file_rename_new(const char *from, const char *to, struct err *err) MUST_CHECK;

/* The last step of what file_write_durable() does, for content too large to be held: `from` was
 * written beside `to` and synced; renamed over it, folder fsynced. */
int file_rename_over(const char *from, const char *to, struct err *err) MUST_CHECK;

int file_write_all(int fd, const void *p, size_t len, struct err *err) MUST_CHECK;
int file_pread_full(int fd, void *p, size_t len, off_t at, struct err *err) MUST_CHECK;
int file_sync(int fd, struct err *err) MUST_CHECK; /* fdatasync */
int dir_sync(const char *path, struct err *err) MUST_CHECK;
/* With its parents, each made durable in its own; exists is fine. */
int dir_make(const char *path, mode_t mode, struct err *err) MUST_CHECK;
int dir_remove_tree(const char *path,
                    struct err *err) MUST_CHECK; /* absent is fine; links not followed */

/* For a file with a secret: nobody but its owner may read or write it (0600). ERR_NOT_FOUND. */
int file_make_private(const char *path, struct err *err) MUST_CHECK;

bool file_exists(const char *path);
int file_free_space(const char *path, uint64_t *free_bytes, uint64_t *total_bytes,
                    struct err *err) MUST_CHECK;

/* Whether the disk of a folder takes writes: a file of its own is made there, synced and removed.
 */
int file_try_folder(const char *folder, struct err *err) MUST_CHECK;

/* Exclusive advisory lock on path (created 0600), held until the descriptor is closed; ERR_IN_USE
 * names the holder's process id when it can be read. */
int file_lock(int *fd, const char *path, struct err *err) MUST_CHECK;

void fd_close(int *fd); /* if >= 0; sets -1 */

#endif
