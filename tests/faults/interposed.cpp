// File-system calls of one folder, counted and made to fail: a library that is loaded before libc (LD_PRELOAD).
//
// A process is armed with a folder, a mode and a number n. From then on it and its forked children count every call
// that changes something in the folder, and at the n-th the armed process is killed or interrupted, or the disk is full,
// or the call waits until it is released. A write at which that happens does half of its work first. The counts lie in a
// small file that all processes map. Calls that a library makes without libc (the renames of safetensors) are not seen.

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

enum Mode { COUNT, KILL, KILL_WORKER, INTERRUPT, FULL, READ_ONLY, PAUSE };
enum Kind { CHANGE, GROWTH };  // a growth needs room on the disk

struct Shared {  // read by calls.py
    std::atomic<long> changes, growths, of_workers;
    std::atomic<int> paused, released;
};

Shared *shared = nullptr;
std::string folder;
int mode = COUNT;
long at = 0;
pid_t armed_process = 0;

template <typename Function> Function original(Function, const char *name) {
    return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}
#define REAL(name) (*[] { static auto found = original(&::name, #name); return found; }())

bool inside(const std::string &path) {
    return path.compare(0, folder.size(), folder) == 0 && (path.size() == folder.size() || path[folder.size()] == '/');
}

std::string path_of(int descriptor) {
    char link[64], target[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, target, sizeof target);
    return length > 0 ? std::string(target, length) : std::string();
}

bool watched(int descriptor) {
    int before = errno;
    bool found = shared != nullptr && inside(path_of(descriptor));
    errno = before;
    return found;
}

bool watched(int directory, const char *path) {
    if (shared == nullptr || path == nullptr) return false;
    if (path[0] == '/') return inside(path);
    char here[4096];
    std::string base = directory != AT_FDCWD ? path_of(directory) : getcwd(here, sizeof here) ? here : "";
    return inside(base + "/" + path);
}

void kill_armed_process() {
    kill(armed_process, SIGKILL);
    while (getpid() == armed_process) pause();
}

bool is_full() { return shared != nullptr && mode == FULL && shared->growths >= at; }

struct Verdict {
    int error = 0;      // what the call fails with
    bool half = false;  // a write does half of its work first
};

Verdict count(Kind kind) {
    long changes = ++shared->changes, growths = kind == GROWTH ? ++shared->growths : shared->growths.load();
    if (getpid() != armed_process && ++shared->of_workers == at && mode == KILL_WORKER) raise(SIGKILL);
    if (mode == READ_ONLY) return {EROFS};
    if (mode == FULL && kind == GROWTH && growths >= at) return {ENOSPC, growths == at};
    if (mode == KILL && changes == at) return {0, true};
    if (mode == INTERRUPT && changes == at) kill(armed_process, SIGINT);
    if (mode == PAUSE && changes == at) {
        shared->paused = 1;
        while (!shared->released) usleep(1000);
    }
    return {};
}

// Whether the call fails; errno says why. To be used for all calls that do not write.
bool fails(Kind kind) {
    Verdict verdict = count(kind);
    if (verdict.half && mode == KILL) kill_armed_process();
    errno = verdict.error ? verdict.error : errno;
    return verdict.error != 0;
}

// A write of `size` bytes by `write(start, size)`, in half where this is the call at which something happens.
template <typename Write> ssize_t counted_write(size_t size, Write write) {
    Verdict verdict = count(GROWTH);
    ssize_t half = verdict.half && size > 1 ? write(0, size / 2) : 0;
    if (verdict.half && mode == KILL) kill_armed_process();
    if (verdict.error && half > 0) return half;
    if (verdict.error) return errno = verdict.error, -1;
    ssize_t rest = write(half, size - half);
    return rest < 0 ? rest : half + rest;
}

bool exists(int directory, const char *path) {
    struct stat status;
    return fstatat(directory, path, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

bool opening_fails(int directory, const char *path, int flags) {
    if (!(flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) || !watched(directory, path)) return false;
    if ((flags & O_CREAT) && !exists(directory, path)) return fails(GROWTH);
    if ((flags & O_TRUNC) || mode == READ_ONLY) return fails(CHANGE);
    return false;
}

int flags_of(const char *how) {
    int flags = strchr(how, '+') ? O_RDWR : how[0] == 'r' ? O_RDONLY : O_WRONLY;
    return flags | (how[0] == 'w' ? O_CREAT | O_TRUNC : how[0] == 'a' ? O_CREAT | O_APPEND : 0);
}

bool has_holes(int descriptor) {
    struct stat status;
    return fstat(descriptor, &status) == 0 && status.st_blocks * 512 < status.st_size;
}

template <typename Status> void without_room(Status *status) {
    if (is_full()) status->f_bfree = status->f_bavail = 0;
}

}  // namespace

extern "C" {

void arm(const char *watched_folder, const char *counts, int chosen_mode, long number) {
    int descriptor = open(counts, O_RDWR);
    void *mapped = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    close(descriptor);
    if (mapped == MAP_FAILED) abort();
    folder = watched_folder, mode = chosen_mode, at = number, armed_process = getpid();
    shared = static_cast<Shared *>(mapped);
}

#define OPEN(name, directory, parameters, arguments)                                                                   \
    int name parameters {                                                                                              \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode_t permissions = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0;                               \
        va_end(rest);                                                                                                  \
        return opening_fails(directory, path, flags) ? -1 : REAL(name) arguments;                                      \
    }
OPEN(open, AT_FDCWD, (const char *path, int flags, ...), (path, flags, permissions))
OPEN(open64, AT_FDCWD, (const char *path, int flags, ...), (path, flags, permissions))
OPEN(openat, directory, (int directory, const char *path, int flags, ...), (directory, path, flags, permissions))
OPEN(openat64, directory, (int directory, const char *path, int flags, ...), (directory, path, flags, permissions))

FILE *fopen(const char *path, const char *how) {
    return opening_fails(AT_FDCWD, path, flags_of(how)) ? nullptr : REAL(fopen)(path, how);
}
FILE *fopen64(const char *path, const char *how) {
    return opening_fails(AT_FDCWD, path, flags_of(how)) ? nullptr : REAL(fopen64)(path, how);
}

ssize_t write(int descriptor, const void *data, size_t size) {
    if (!watched(descriptor)) return REAL(write)(descriptor, data, size);
    return counted_write(size, [=](size_t start, size_t count) {
        return REAL(write)(descriptor, static_cast<const char *>(data) + start, count);
    });
}
ssize_t pwrite64(int descriptor, const void *data, size_t size, off64_t offset) {
    if (!watched(descriptor)) return REAL(pwrite64)(descriptor, data, size, offset);
    return counted_write(size, [=](size_t start, size_t count) {
        return REAL(pwrite64)(descriptor, static_cast<const char *>(data) + start, count, offset + start);
    });
}
ssize_t pwrite(int descriptor, const void *data, size_t size, off_t offset) {
    return pwrite64(descriptor, data, size, offset);
}
ssize_t writev(int descriptor, const iovec *parts, int number) {
    if (!watched(descriptor)) return REAL(writev)(descriptor, parts, number);
    std::string joined;
    for (int part = 0; part < number; ++part)
        joined.append(static_cast<const char *>(parts[part].iov_base), parts[part].iov_len);
    return write(descriptor, joined.data(), joined.size());
}
// libc's own calls of write() cannot be interposed, so a stream of the folder is written without its buffer.
size_t fwrite(const void *data, size_t size, size_t number, FILE *stream) {
    if (!watched(fileno(stream))) return REAL(fwrite)(data, size, number, stream);
    fflush(stream);
    size_t done = 0;
    while (done < size * number) {
        ssize_t more = write(fileno(stream), static_cast<const char *>(data) + done, size * number - done);
        if (more < 0) break;
        done += more;
    }
    return size ? done / size : 0;
}
ssize_t sendfile64(int target, int source, off64_t *offset, size_t size) {
    if (watched(target) && fails(GROWTH)) return -1;
    return REAL(sendfile64)(target, source, offset, size);
}
ssize_t sendfile(int target, int source, off_t *offset, size_t size) {
    return sendfile64(target, source, offset, size);
}
ssize_t copy_file_range(int source, off64_t *from, int target, off64_t *to, size_t size, unsigned flags) {
    if (watched(target) && fails(GROWTH)) return -1;
    return REAL(copy_file_range)(source, from, target, to, size, flags);
}

#define OF_DESCRIPTOR(result, name, kind, parameters, arguments)                                                       \
    result name parameters { return watched(descriptor) && fails(kind) ? -1 : REAL(name) arguments; }
OF_DESCRIPTOR(int, ftruncate, CHANGE, (int descriptor, off_t size), (descriptor, size))
OF_DESCRIPTOR(int, ftruncate64, CHANGE, (int descriptor, off64_t size), (descriptor, size))
OF_DESCRIPTOR(int, fallocate, GROWTH, (int descriptor, int how, off_t start, off_t size),
              (descriptor, how, start, size))
OF_DESCRIPTOR(int, fallocate64, GROWTH, (int descriptor, int how, off64_t start, off64_t size),
              (descriptor, how, start, size))

// Nothing is really synchronised: that is slow, and a killed process loses nothing that it has written.
int fsync(int descriptor) { return watched(descriptor) ? -fails(CHANGE) : REAL(fsync)(descriptor); }
int fdatasync(int descriptor) { return watched(descriptor) ? -fails(CHANGE) : REAL(fdatasync)(descriptor); }

int posix_fallocate64(int descriptor, off64_t start, off64_t size) {
    if (watched(descriptor) && fails(GROWTH)) return errno;
    return REAL(posix_fallocate64)(descriptor, start, size);
}
int posix_fallocate(int descriptor, off_t start, off_t size) { return posix_fallocate64(descriptor, start, size); }

#define OF_PATH(name, kind, directory, path, parameters, arguments)                                                    \
    int name parameters { return watched(directory, path) && fails(kind) ? -1 : REAL(name) arguments; }
OF_PATH(truncate, CHANGE, AT_FDCWD, path, (const char *path, off_t size), (path, size))
OF_PATH(truncate64, CHANGE, AT_FDCWD, path, (const char *path, off64_t size), (path, size))
OF_PATH(unlink, CHANGE, AT_FDCWD, path, (const char *path), (path))
OF_PATH(unlinkat, CHANGE, directory, path, (int directory, const char *path, int how), (directory, path, how))
OF_PATH(rmdir, CHANGE, AT_FDCWD, path, (const char *path), (path))
OF_PATH(remove, CHANGE, AT_FDCWD, path, (const char *path), (path))
int mkdirat(int directory, const char *path, mode_t permissions) {
    if (watched(directory, path) && !exists(directory, path) && fails(GROWTH)) return -1;
    return REAL(mkdirat)(directory, path, permissions);
}
int mkdir(const char *path, mode_t permissions) { return mkdirat(AT_FDCWD, path, permissions); }
OF_PATH(rename, CHANGE, AT_FDCWD, to, (const char *from, const char *to), (from, to))
OF_PATH(renameat, CHANGE, target, to, (int source, const char *from, int target, const char *to),
        (source, from, target, to))
OF_PATH(renameat2, CHANGE, target, to, (int source, const char *from, int target, const char *to, unsigned how),
        (source, from, target, to, how))
OF_PATH(link, GROWTH, AT_FDCWD, to, (const char *from, const char *to), (from, to))
OF_PATH(symlink, GROWTH, AT_FDCWD, path, (const char *target, const char *path), (target, path))
OF_PATH(chmod, CHANGE, AT_FDCWD, path, (const char *path, mode_t permissions), (path, permissions))
OF_PATH(utimensat, CHANGE, directory, path, (int directory, const char *path, const timespec *times, int how),
        (directory, path, times, how))

int access(const char *path, int how) {
    if (mode == READ_ONLY && (how & W_OK) && watched(AT_FDCWD, path)) return errno = EROFS, -1;
    return REAL(access)(path, how);
}

// On a full disk a page of a hole cannot be written, and the first touch of it is a SIGBUS.
void *mmap64(void *address, size_t size, int protection, int flags, int descriptor, off64_t offset) {
    bool shares = (flags & MAP_SHARED) && (protection & PROT_WRITE) && descriptor >= 0 && watched(descriptor);
    if (shares && has_holes(descriptor) && fails(GROWTH) && errno == ENOSPC) raise(SIGBUS);
    return REAL(mmap64)(address, size, protection, flags, descriptor, offset);
}
void *mmap(void *address, size_t size, int protection, int flags, int descriptor, off_t offset) {
    return mmap64(address, size, protection, flags, descriptor, offset);
}

int statvfs(const char *path, struct statvfs *status) {
    int result = REAL(statvfs)(path, status);
    without_room(status);
    return result;
}
int statvfs64(const char *path, struct statvfs64 *status) {
    int result = REAL(statvfs64)(path, status);
    without_room(status);
    return result;
}
int fstatvfs(int descriptor, struct statvfs *status) {
    int result = REAL(fstatvfs)(descriptor, status);
    without_room(status);
    return result;
}

}
