/* A preload library that makes one file operation of a process fail, or kills the process at it.

   `arm_faults(root, at, kind, record, stride)` begins to count the operations that change files below `root`; number `at`, from 1, is hit. Kinds:

     1  ENOSPC  a full disk: half of a write is done first, and from here on everything that needs room fails, until the process ends
     2  EIO     this one operation fails, the ones after it do not
     3  KILL    half of a write is done, then the process is killed
     4  COPY    what KILL would leave is copied to `record`/N, at operation N = `at` and every `stride` after it, and the process goes on

   Counted: opening for writing, write, fsync, rename, link, unlink, rmdir, mkdir, truncate, allocate, copy. Reading is not, nor what is written through
   a memory map or through a FILE of the C library after it was opened. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ENOSPC_KIND = 1, EIO_KIND = 2, KILL_KIND = 3, COPY_KIND = 4 };

static char root[PATH_MAX];
static size_t root_length;
static long hit_at, hit_stride;
static int hit_kind;
static atomic_long count;
static atomic_int armed, is_full;
static char hit_name[PATH_MAX + 32];
static char record_path[PATH_MAX], names_path[PATH_MAX + 32];

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

/* Begin to count below `directory`; the operation that is hit is also written to the file `record`, which lies elsewhere. */
void arm_faults(const char *directory, long at, int kind, const char *record, long stride) {
  root_length = strlen(directory);
  memcpy(root, directory, root_length + 1);
  strcpy(record_path, record);
  snprintf(names_path, sizeof names_path, "%s%s", record, kind == COPY_KIND ? ".operations" : "");
  hit_at = at;
  hit_stride = stride;
  hit_kind = kind;
  atomic_store(&count, 0);
  atomic_store(&is_full, 0);
  atomic_store(&armed, 1);
}

long count_faults(void) { return atomic_load(&count); }

void disarm_faults(void) { atomic_store(&armed, 0); }

/* Where copies are made, one operation happens at a time, so that each copy is of one moment. */
static pthread_mutex_t one_at_a_time = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static int enter(void) { return atomic_load(&armed) && hit_kind == COPY_KIND && !pthread_mutex_lock(&one_at_a_time); }

static void leave(int *is_inside) {
  if (*is_inside) pthread_mutex_unlock(&one_at_a_time);
}

#define ALONE int is_inside __attribute__((cleanup(leave), unused)) = enter()

static void copy(long number) {
  char target[PATH_MAX + 32], *arguments[] = {"cp", "-a", root, target, NULL}, *environment[] = {NULL};
  snprintf(target, sizeof target, "%s/%ld", record_path, number);
  pid_t child;
  int status;
  if (posix_spawn(&child, "/bin/cp", NULL, NULL, arguments, environment) || waitpid(child, &status, 0) != child || status) abort();
}

static int is_below(const char *path) { return !strncmp(path, root, root_length) && (path[root_length] == '/' || !path[root_length]); }

static int path_of(int descriptor, char *path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  ssize_t length = readlink(link, path, PATH_MAX - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return 1;
}

static int concerns_path(int directory, const char *path, char *whole) {
  if (!atomic_load(&armed)) return 0;
  if (path[0] == '/') {
    snprintf(whole, PATH_MAX, "%s", path);
  } else {
    char parent[PATH_MAX];
    if (directory == AT_FDCWD ? !getcwd(parent, sizeof parent) : !path_of(directory, parent)) return 0;
    if (snprintf(whole, PATH_MAX, "%s/%s", parent, path) >= PATH_MAX) return 0;
  }
  return is_below(whole);
}

static int concerns_descriptor(int descriptor, char *whole) { return atomic_load(&armed) && path_of(descriptor, whole) && is_below(whole); }

static void record(long number, const char *operation, const char *path) {
  snprintf(hit_name, sizeof hit_name, "%ld %s %s\n", number, operation, path + root_length);
  int descriptor = REAL(open)(names_path, O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (descriptor >= 0) {
    if (REAL(write)(descriptor, hit_name, strlen(hit_name)) < 0) abort();
    REAL(close)(descriptor);
  }
}

/* Count an operation. Returns 0 where it shall happen, else the error; `needs_room`: a full disk refuses it. For a write, `half` is set where half of it is to
   be done first: then the caller calls `finish`. */
static int fault(const char *operation, const char *path, int needs_room, int *half) {
  long number = atomic_fetch_add(&count, 1) + 1;
  if (hit_kind == COPY_KIND) {
    record(number, operation, path);
    if (number < hit_at || (number - hit_at) % hit_stride) return 0;
    if (half) {
      *half = 1; /* the copy is made when half of the write is done */
      return EAGAIN;
    }
    copy(number);
    return 0;
  }
  if (number == hit_at) {
    record(number, operation, path);
    if (hit_kind == ENOSPC_KIND) atomic_store(&is_full, 1);
    if (half) *half = hit_kind != EIO_KIND;
    if (hit_kind == KILL_KIND && !half) kill(getpid(), SIGKILL);
    return hit_kind == EIO_KIND ? EIO : ENOSPC;
  }
  return needs_room && atomic_load(&is_full) ? ENOSPC : 0;
}

/* Half of a write is done. Returns whether the other half is to follow. */
static int finish(void) {
  if (hit_kind == KILL_KIND) kill(getpid(), SIGKILL);
  if (hit_kind == COPY_KIND) copy(atomic_load(&count));
  return hit_kind == COPY_KIND;
}

#define FAIL(error) \
  do {              \
    errno = error;  \
    return -1;      \
  } while (0)

static int open_fault(int directory, const char *path, int flags) {
  char whole[PATH_MAX];
  if (!(flags & (O_WRONLY | O_RDWR | O_CREAT)) || !concerns_path(directory, path, whole)) return 0;
  return fault("open", whole, (flags & O_CREAT) && REAL(access)(whole, F_OK), NULL);
}

#define MODE(flags)                                            \
  mode_t mode = 0;                                             \
  if ((flags) & (O_CREAT | O_TMPFILE)) {                       \
    va_list arguments;                                         \
    va_start(arguments, flags);                                \
    mode = va_arg(arguments, mode_t);                          \
    va_end(arguments);                                         \
  }

#define OPEN(name)                                             \
  int name(const char *path, int flags, ...) {                 \
    ALONE;                                                     \
    MODE(flags)                                                \
    int error = open_fault(AT_FDCWD, path, flags);             \
    if (error) FAIL(error);                                    \
    return REAL(name)(path, flags, mode);                      \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                           \
  int name(int directory, const char *path, int flags, ...) {  \
    ALONE;                                                     \
    MODE(flags)                                                \
    int error = open_fault(directory, path, flags);            \
    if (error) FAIL(error);                                    \
    return REAL(name)(directory, path, flags, mode);           \
  }
OPENAT(openat)
OPENAT(openat64)

#define CREAT(name)                                                           \
  int name(const char *path, mode_t mode) {                                   \
    ALONE;                                                                    \
    int error = open_fault(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC);     \
    if (error) FAIL(error);                                                   \
    return REAL(name)(path, mode);                                            \
  }
CREAT(creat)
CREAT(creat64)

#define FOPEN(name)                                                                                 \
  FILE *name(const char *path, const char *mode) {                                                  \
    ALONE;                                                                                          \
    int error = strpbrk(mode, "wa+") ? open_fault(AT_FDCWD, path, O_WRONLY | O_CREAT) : 0;          \
    if (error) {                                                                                    \
      errno = error;                                                                                \
      return NULL;                                                                                  \
    }                                                                                               \
    return REAL(name)(path, mode);                                                                  \
  }
FOPEN(fopen)
FOPEN(fopen64)

ssize_t write(int descriptor, const void *bytes, size_t size) {
  ALONE;
  char whole[PATH_MAX];
  if (!concerns_descriptor(descriptor, whole)) return REAL(write)(descriptor, bytes, size);
  int half = 0, error = fault("write", whole, 1, &half);
  if (!error) return REAL(write)(descriptor, bytes, size);
  size_t first = half ? size / 2 : 0;
  ssize_t done = first ? REAL(write)(descriptor, bytes, first) : 0;
  if (half && finish()) return done + REAL(write)(descriptor, (const char *)bytes + first, size - first);
  if (done > 0) return done; /* a disk that becomes full takes a part first */
  FAIL(error);
}

#define PWRITE(name, offset_type)                                                                                                   \
  ssize_t name(int descriptor, const void *bytes, size_t size, offset_type offset) {                                                \
    ALONE;                                                                                                                          \
    char whole[PATH_MAX];                                                                                                           \
    if (!concerns_descriptor(descriptor, whole)) return REAL(name)(descriptor, bytes, size, offset);                                \
    int half = 0, error = fault("write", whole, 1, &half);                                                                          \
    if (!error) return REAL(name)(descriptor, bytes, size, offset);                                                                 \
    size_t first = half ? size / 2 : 0;                                                                                             \
    ssize_t done = first ? REAL(name)(descriptor, bytes, first, offset) : 0;                                                        \
    if (half && finish()) return done + REAL(name)(descriptor, (const char *)bytes + first, size - first, offset + (off64_t)first); \
    if (done > 0) return done;                                                                                                      \
    FAIL(error);                                                                                                                    \
  }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

/* Of a vector of buffers half of the first is written; its caller sees a short write, and writes the rest. */
ssize_t writev(int descriptor, const struct iovec *vector, int length) {
  ALONE;
  char whole[PATH_MAX];
  if (!concerns_descriptor(descriptor, whole)) return REAL(writev)(descriptor, vector, length);
  int half = 0, error = fault("write", whole, 1, &half);
  if (!error) return REAL(writev)(descriptor, vector, length);
  size_t first = half && length > 0 ? vector[0].iov_len / 2 : 0;
  ssize_t done = first ? REAL(write)(descriptor, vector[0].iov_base, first) : 0;
  if (half && finish() && !done) return REAL(writev)(descriptor, vector, length);
  if (done > 0) return done;
  FAIL(error);
}

#define ON_DESCRIPTOR(type, name, parameters, arguments, operation, needs_room) \
  type name parameters {                                                        \
    ALONE;                                                                      \
    char whole[PATH_MAX];                                                       \
    if (concerns_descriptor(descriptor, whole)) {                               \
      int error = fault(operation, whole, needs_room, NULL);                    \
      if (error) FAIL(error);                                                   \
    }                                                                           \
    return REAL(name) arguments;                                                \
  }
ON_DESCRIPTOR(ssize_t, pwritev, (int descriptor, const struct iovec *vector, int length, off_t offset), (descriptor, vector, length, offset), "write", 1)
ON_DESCRIPTOR(ssize_t, pwritev64, (int descriptor, const struct iovec *vector, int length, off64_t offset), (descriptor, vector, length, offset), "write", 1)
ON_DESCRIPTOR(ssize_t, sendfile, (int descriptor, int source, off_t *offset, size_t size), (descriptor, source, offset, size), "copy", 1)
ON_DESCRIPTOR(ssize_t, sendfile64, (int descriptor, int source, off64_t *offset, size_t size), (descriptor, source, offset, size), "copy", 1)
ON_DESCRIPTOR(ssize_t, copy_file_range, (int source, off64_t *from, int descriptor, off64_t *to, size_t size, unsigned flags),
              (source, from, descriptor, to, size, flags), "copy", 1)
ON_DESCRIPTOR(int, fsync, (int descriptor), (descriptor), "fsync", 0)
ON_DESCRIPTOR(int, fdatasync, (int descriptor), (descriptor), "fsync", 0)
ON_DESCRIPTOR(int, ftruncate, (int descriptor, off_t size), (descriptor, size), "truncate", 0)
ON_DESCRIPTOR(int, ftruncate64, (int descriptor, off64_t size), (descriptor, size), "truncate", 0)
ON_DESCRIPTOR(int, fallocate, (int descriptor, int mode, off_t offset, off_t size), (descriptor, mode, offset, size), "allocate", 1)
ON_DESCRIPTOR(int, fallocate64, (int descriptor, int mode, off64_t offset, off64_t size), (descriptor, mode, offset, size), "allocate", 1)

#define ALLOCATE(name, offset_type)                                    \
  int name(int descriptor, offset_type offset, offset_type size) {     \
    ALONE;                                                             \
    char whole[PATH_MAX];                                              \
    if (concerns_descriptor(descriptor, whole)) {                      \
      int error = fault("allocate", whole, 1, NULL);                   \
      if (error) return error; /* this one does not use errno */       \
    }                                                                  \
    return REAL(name)(descriptor, offset, size);                       \
  }
ALLOCATE(posix_fallocate, off_t)
ALLOCATE(posix_fallocate64, off64_t)

#define ON_PATH(name, parameters, arguments, directory, path, operation, needs_room) \
  int name parameters {                                                              \
    ALONE;                                                                           \
    char whole[PATH_MAX];                                                            \
    if (concerns_path(directory, path, whole)) {                                     \
      int error = fault(operation, whole, needs_room, NULL);                         \
      if (error) FAIL(error);                                                        \
    }                                                                                \
    return REAL(name) arguments;                                                     \
  }
ON_PATH(rename, (const char *from, const char *to), (from, to), AT_FDCWD, to, "rename", 0)
ON_PATH(renameat, (int before, const char *from, int after, const char *to), (before, from, after, to), after, to, "rename", 0)
ON_PATH(renameat2, (int before, const char *from, int after, const char *to, unsigned flags), (before, from, after, to, flags), after, to, "rename", 0)
ON_PATH(link, (const char *from, const char *to), (from, to), AT_FDCWD, to, "link", 1)
ON_PATH(linkat, (int before, const char *from, int after, const char *to, int flags), (before, from, after, to, flags), after, to, "link", 1)
ON_PATH(symlink, (const char *from, const char *to), (from, to), AT_FDCWD, to, "link", 1)
ON_PATH(unlink, (const char *path), (path), AT_FDCWD, path, "unlink", 0)
ON_PATH(unlinkat, (int directory, const char *path, int flags), (directory, path, flags), directory, path, "unlink", 0)
ON_PATH(remove, (const char *path), (path), AT_FDCWD, path, "unlink", 0)
ON_PATH(rmdir, (const char *path), (path), AT_FDCWD, path, "rmdir", 0)
ON_PATH(mkdir, (const char *path, mode_t mode), (path, mode), AT_FDCWD, path, "mkdir", 1)
ON_PATH(mkdirat, (int directory, const char *path, mode_t mode), (directory, path, mode), directory, path, "mkdir", 1)
ON_PATH(truncate, (const char *path, off_t size), (path, size), AT_FDCWD, path, "truncate", 0)
