/* Where the tests' own files lie, for programs that read some of them. */
#ifndef TESTS_TESTS_FOLDER_H
#define TESTS_TESTS_FOLDER_H

extern const char tests_folder[];

#endif
