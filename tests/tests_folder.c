/* The folder is told by the build. */
#include "tests_folder.h"

const char tests_folder[] = TESTS_FOLDER;
