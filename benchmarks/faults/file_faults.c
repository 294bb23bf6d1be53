/* Fail at one chosen file operation below a folder: a library for LD_PRELOAD.
 *
 * It wraps the calls of libc that change files, and those that read them. While it is disarmed it only passes them on.
 * `arm` chooses a folder, a kind of operation, an action and a number; the operation with that number then fails.
 * Python, NumPy and safetensors (Rust) all reach the disk through these calls, so none of them needs a hook of its own.
 * Not seen: stores into a mapped file, and stdio inside libc.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { CHANGES = 1, READS = 2 };                 /* kinds of operations */
enum { COUNT = 0, KILL = 1, TEAR = 2, FAIL = 3, FAIL_ON = 4 }; /* actions; FAIL_ON fails this operation and all later */

static char root[PATH_MAX];
static size_t root_length;
static int kind, action, number_of_error;
static long chosen;
static atomic_long seen;
static atomic_int armed;

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

void arm(const char *folder, int which, int what, long operation, int error) {
  strncpy(root, folder, sizeof root - 1);
  root_length = strlen(root);
  kind = which, action = what, chosen = operation, number_of_error = error;
  atomic_store(&seen, 0);
  atomic_store(&armed, 1);
}

long disarm(void) {
  atomic_store(&armed, 0);
  return atomic_load(&seen);
}

static int below(const char *path) {
  char whole[PATH_MAX];
  if (path == NULL) return 0;
  if (path[0] != '/') {
    if (getcwd(whole, sizeof whole) == NULL || strlen(whole) + strlen(path) + 2 > sizeof whole) return 0;
    strcat(strcat(whole, "/"), path);
    path = whole;
  }
  return strncmp(path, root, root_length) == 0 && (path[root_length] == '/' || path[root_length] == 0);
}

static int open_below(int file) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return below(path);
}

/* Return 0 to go on, 1 to tear this operation, -1 to fail it (errno is set). Does not return from a kill. */
static int meet(int which) {
  if (which != kind) return 0;
  long this = atomic_fetch_add(&seen, 1);
  if (this < chosen || (this > chosen && action != FAIL_ON)) return 0;
  if (action == KILL) kill(getpid(), SIGKILL);
  if (action == TEAR) return 1;
  if (action == FAIL || action == FAIL_ON) return errno = number_of_error, -1;
  return 0;
}

#define ARMED atomic_load(&armed)

/* Operations that free room do not fail on a full disk. */
static int frees(void) { return number_of_error == ENOSPC && (action == FAIL || action == FAIL_ON); }

static int met(int which) { /* an operation that cannot be torn: tearing means to die before it */
  int result = meet(which);
  if (result == 1) kill(getpid(), SIGKILL);
  return result;
}

/* Read the mode of a new file, which is the last argument, and tell writing from reading. */
#define READ_FLAGS                                                                                                     \
  mode_t mode = 0;                                                                                                     \
  if (flags & (O_CREAT | O_TMPFILE)) {                                                                                 \
    va_list rest;                                                                                                      \
    va_start(rest, flags);                                                                                             \
    mode = va_arg(rest, mode_t);                                                                                       \
    va_end(rest);                                                                                                      \
  }                                                                                                                    \
  int kind_of_open = (flags & O_ACCMODE) != O_RDONLY ? CHANGES : READS;

#define OPEN(name)                                                                                                     \
  int name(const char *path, int flags, ...) {                                                                         \
    READ_FLAGS                                                                                                         \
    if (ARMED && below(path) && met(kind_of_open) < 0) return -1;                                         \
    return NEXT(name)(path, flags, mode);                                                                              \
  }
OPEN(open)
OPEN(open64)

#define OPEN_AT(name)                                                                                                  \
  int name(int folder, const char *path, int flags, ...) {                                                             \
    READ_FLAGS                                                                                                         \
    int ours = path[0] == '/' || folder == AT_FDCWD ? below(path) : open_below(folder);                                \
    if (ARMED && ours && met(kind_of_open) < 0) return -1;                                                \
    return NEXT(name)(folder, path, flags, mode);                                                                      \
  }
OPEN_AT(openat)
OPEN_AT(openat64)

/* Writes and reads on an open file. A torn write leaves half of its bytes, and the process dies. */
#define MOVE(result_type, name, which, parameters, whole, half)                                                        \
  result_type name parameters {                                                                                        \
    if (ARMED && open_below(file)) {                                                                                   \
      int result = meet(which);                                                                                        \
      if (result < 0) return -1;                                                                                       \
      if (result == 1) {                                                                                               \
        (void)!NEXT(name) half;                                                                                        \
        kill(getpid(), SIGKILL);                                                                                       \
      }                                                                                                                \
    }                                                                                                                  \
    return NEXT(name) whole;                                                                                           \
  }
MOVE(ssize_t, write, CHANGES, (int file, const void *data, size_t n), (file, data, n), (file, data, n / 2))
MOVE(ssize_t, pwrite, CHANGES, (int file, const void *data, size_t n, off_t at), (file, data, n, at),
     (file, data, n / 2, at))
MOVE(ssize_t, pwrite64, CHANGES, (int file, const void *data, size_t n, off64_t at), (file, data, n, at),
     (file, data, n / 2, at))
MOVE(ssize_t, writev, CHANGES, (int file, const struct iovec *parts, int n), (file, parts, n), (file, parts, n / 2))
MOVE(ssize_t, read, READS, (int file, void *data, size_t n), (file, data, n), (file, data, 0))
MOVE(ssize_t, pread, READS, (int file, void *data, size_t n, off_t at), (file, data, n, at), (file, data, 0, at))
MOVE(ssize_t, pread64, READS, (int file, void *data, size_t n, off64_t at), (file, data, n, at), (file, data, 0, at))
/* Syncs are counted, and not made: processes die here, never the machine, and a sync takes longer than all else. */
#define SYNC(name)                                                                                                     \
  int name(int file) { return ARMED && open_below(file) && met(CHANGES) < 0 ? -1 : 0; }
SYNC(fsync)
SYNC(fdatasync)
MOVE(int, ftruncate, CHANGES, (int file, off_t size), (file, size), (file, size / 2))
MOVE(int, ftruncate64, CHANGES, (int file, off64_t size), (file, size), (file, size / 2))

/* Changes of names. */
#define NAMED(name, path, parameters, arguments)                                                                       \
  int name parameters {                                                                                                \
    if (ARMED && below(path) && met(CHANGES) < 0) return -1;                                                           \
    return NEXT(name) arguments;                                                                                       \
  }
#define NAMED_FREES(name, ours, parameters, arguments)                                                                 \
  int name parameters {                                                                                                \
    if (ARMED && !frees() && (ours) && met(CHANGES) < 0) return -1;                                                    \
    return NEXT(name) arguments;                                                                                       \
  }
NAMED(mkdir, path, (const char *path, mode_t mode), (path, mode))
NAMED_FREES(rename, below(to), (const char *from, const char *to), (from, to))
NAMED_FREES(renameat, below(to), (int a, const char *from, int b, const char *to), (a, from, b, to))
NAMED_FREES(unlink, below(path), (const char *path), (path))
NAMED_FREES(unlinkat, path[0] == '/' || folder == AT_FDCWD ? below(path) : open_below(folder),
            (int folder, const char *path, int flags), (folder, path, flags))
NAMED_FREES(rmdir, below(path), (const char *path), (path))
