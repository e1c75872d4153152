/* A remote storage whose peer is a gateway of this process, over a local storage in the test's
 * folder; its users are those of the conformance suite of object/. */
#ifndef TESTS_UNIT_S3_REMOTE_LAB_H
#define TESTS_UNIT_S3_REMOTE_LAB_H

#include "object/remote/remote.h"

enum { REMOTE_LAB_PART_MIN = 100 };

struct remote_lab;

struct remote_lab *remote_lab_start(void);
struct remote_lab *remote_lab_start_in(const char *dir); /* with the data in a folder of its own */
/* The same, and the storage has this name. */
struct remote_lab *remote_lab_start_as(const char *dir, const char *name);
void remote_lab_stop(struct remote_lab *l);
struct storage *remote_lab_storage(struct remote_lab *l);
/* Hands the storage over to the caller, who closes it before the lab is stopped. */
struct storage *remote_lab_take_storage(struct remote_lab *l);

#endif
