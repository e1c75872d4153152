/* RocksDB reports failures as text. This file translates the text into error codes. */
#include "db/db_int.h"

#include <string.h>

/* Parts of RocksDB's messages and their codes. The first part that occurs in a message decides. A
 * message begins with the class of the error, and details follow. The details are more exact, so
 * they come first in this table. */
static const struct {
    const char *part;
    int code;
} messages[] = {
    {"No space left on device", ERR_NO_SPACE},
    {"Disk quota exceeded", ERR_NO_SPACE},
    {"lock hold by current process", ERR_IN_USE},
    {"While lock file", ERR_IN_USE},
    {"Corruption", ERR_CORRUPT},
    {"does not match", ERR_CORRUPT},
    {"Permission denied", ERR_DENIED},
    {"Too many open files", ERR_BUSY},
    {"Shutdown in progress", ERR_SHUTDOWN},
};

int error_take(struct err *err, char *message, const char *what, const char *path)
{
    int code = ERR_IO;

    for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
        if (strstr(message, messages[i].part)) {
            code = messages[i].code;
            break;
        }
    }
    if (code == ERR_IN_USE)
        err_set(err, code, "%s %s: the folder is in use by another process", what, path);
    else
        err_set(err, code, "%s %s: %s", what, path, message);
    rocksdb_free(message);
    return code;
}
