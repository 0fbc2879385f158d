// Makes a write of this process fail, for tests: loaded with LD_PRELOAD. The file that DISK_FAULT names holds a call and an
// errno, as in "fdatasync 5"; the next such call fails with it, once, and the file is gone. `meta` is a write to a file
// that is open with O_DSYNC: the last of LMDB's commits. While the file that DISK_STALL names holds "look" or "listen",
// this process stands still once it has read which commit is the last, or before a socket that has its name listens.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static int isDue(const char *call) {
  const char *path = getenv("DISK_FAULT");
  if (!path || access(path, F_OK) != 0) return 0;
  FILE *file = fopen(path, "r");
  char wanted[32];
  int code = 0;
  int read = file ? fscanf(file, "%31s %d", wanted, &code) : 0;
  if (file) fclose(file);
  if (read != 2 || strcmp(wanted, call) != 0) return 0;
  unlink(path);
  errno = code;
  return 1;
}

static void stall(const char *call) {
  const char *path = getenv("DISK_STALL");
  FILE *file = path ? fopen(path, "r") : NULL;
  char wanted[32] = "";
  if (file && fscanf(file, "%31s", wanted) != 1) wanted[0] = 0;
  if (file) fclose(file);
  if (strcmp(wanted, call) != 0) return;
  char reached[4096];
  snprintf(reached, sizeof reached, "%s.reached", path);
  close(open(reached, O_CREAT | O_WRONLY, 0600));
  while (access(path, F_OK) == 0) usleep(1000);
}

ssize_t pread64(int fd, void *bytes, size_t count, off64_t offset) {
  ssize_t result = ((ssize_t(*)(int, void *, size_t, off64_t))dlsym(RTLD_NEXT, "pread64"))(fd, bytes, count, offset);
  // The second of the two pages that name a commit.
  if (offset == 4096 && result >= 28 && *(unsigned *)((char *)bytes + 24) == 0xbeefc0de) stall("look");
  return result;
}

int listen(int fd, int count) {
  stall("listen");
  return ((int (*)(int, int))dlsym(RTLD_NEXT, "listen"))(fd, count);
}

int fdatasync(int fd) {
  if (isDue("fdatasync")) return -1;
  return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
  if (isDue(fcntl(fd, F_GETFL) & O_DSYNC ? "meta" : "pages")) return -1;
  return ((ssize_t(*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64"))(fd, bytes, count, offset);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
  if (isDue("pages")) return -1;
  return ((ssize_t(*)(int, const struct iovec *, int))dlsym(RTLD_NEXT, "writev"))(fd, parts, count);
}
