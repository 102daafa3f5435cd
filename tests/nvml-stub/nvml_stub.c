/* A stand-in for NVIDIA's libnvidia-ml.so.1, for tests on machines without a GPU.
 *
 * Written from NVIDIA's public NVML reference (function names, argument order, enum values and structure layouts); it has the calls that
 * vramp makes and no code of NVIDIA's. Every query reads a text file anew, so that a test moves memory, load and faults over time by
 * writing it (a temporary file, renamed over the old one). README.md lists its keys. Without the file: one idle card.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int ret_t;

enum {
    OK = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9, TIMEOUT = 10, FUNCTION_NOT_FOUND = 13, GPU_IS_LOST = 15,
    ARGUMENT_VERSION_MISMATCH = 25, UNKNOWN = 999
};
static const struct { int code; const char *name, *text; } errors[] = {
    {0, "SUCCESS", "The operation was successful"},
    {1, "UNINITIALIZED", "NVML was not first initialized with nvmlInit()"},
    {2, "INVALID_ARGUMENT", "A supplied argument is invalid"},
    {3, "NOT_SUPPORTED", "The requested operation is not available on target device"},
    {4, "NO_PERMISSION", "The current user does not have permission for operation"},
    {5, "ALREADY_INITIALIZED", "Deprecated error code (5)"},
    {6, "NOT_FOUND", "A query to find an object was unsuccessful"},
    {7, "INSUFFICIENT_SIZE", "An input argument is not large enough"},
    {8, "INSUFFICIENT_POWER", "A device's external power cables are not properly attached"},
    {9, "DRIVER_NOT_LOADED", "NVIDIA driver is not loaded"},
    {10, "TIMEOUT", "User provided timeout passed"},
    {11, "IRQ_ISSUE", "NVIDIA Kernel detected an interrupt issue with a GPU"},
    {12, "LIBRARY_NOT_FOUND", "NVML Shared Library couldn't be found or loaded"},
    {13, "FUNCTION_NOT_FOUND", "Local version of NVML doesn't implement this function"},
    {14, "CORRUPTED_INFOROM", "infoROM is corrupted"},
    {15, "GPU_IS_LOST", "The GPU has fallen off the bus or has otherwise become inaccessible"},
    {16, "RESET_REQUIRED", "The GPU requires a reset before it can be used again"},
    {17, "OPERATING_SYSTEM", "The GPU control device has been blocked by the operating system/cgroups"},
    {18, "LIB_RM_VERSION_MISMATCH", "RM detects a driver/library version mismatch."},
    {19, "IN_USE", "An operation cannot be performed because the GPU is currently in use"},
    {20, "MEMORY", "Insufficient memory"},
    {21, "NO_DATA", "No data"},
    {22, "VGPU_ECC_NOT_SUPPORTED", "The requested vgpu operation is not available, because ECC is enabled"},
    {23, "INSUFFICIENT_RESOURCES", "Ran out of critical resources, other than memory"},
    {24, "FREQ_NOT_SUPPORTED", "Ran out of critical resources, other than memory"},
    {25, "ARGUMENT_VERSION_MISMATCH", "The provided version is invalid/unsupported"},
    {26, "DEPRECATED", "The requested functionality has been deprecated"},
    {27, "NOT_READY", "The system is not ready for the request"},
    {28, "GPU_NOT_FOUND", "No GPUs were found"},
    {29, "INVALID_STATE", "Resource not in correct state to perform requested operation"},
    {999, "UNKNOWN", "Unknown Error"},
};

/* ------------------------------------------------------------------ state file */
#define MAX_GPU 16
struct dev { int gpu; };
typedef struct dev *dev_t_;
static struct dev devs[MAX_GPU];
static int inits;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct state { char *text; };            /* one query's view of the file */

/* The file that NVML_STUB_STATE names, else nvml.state beside this library. */
static const char *state_path(char *out, size_t size) {
    const char *named = getenv("NVML_STUB_STATE");
    Dl_info self;
    if (named && *named) return named;
    if (!dladdr((void *)devs, &self) || !self.dli_fname) return NULL;
    const char *slash = strrchr(self.dli_fname, '/');
    if (!slash) return NULL;
    snprintf(out, size, "%.*s/nvml.state", (int)(slash - self.dli_fname), self.dli_fname);
    return out;
}
static struct state load(void) {
    struct state s = {NULL};
    char beside[4096];
    const char *path = state_path(beside, sizeof beside);
    if (!path) return s;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return s;
    size_t cap = 8192, n = 0;
    char *b = malloc(cap + 1);
    while (b) {
        ssize_t r = read(fd, b + n, cap - n);
        if (r < 0 && errno == EINTR) continue;
        if (r <= 0) break;
        n += (size_t)r;
        if (n == cap) { char *m = realloc(b, cap * 2 + 1); if (!m) break; b = m; cap *= 2; }
    }
    close(fd);
    if (b) b[n] = 0;
    s.text = b;
    return s;
}
static void drop(struct state *s) { free(s->text); s->text = NULL; }

/* Value of "key" in s: the last line that has it. Returns 1 and fills out (cut to size), or 0. */
static int get(struct state *s, const char *key, char *out, size_t size) {
    size_t kl = strlen(key);
    int found = 0;
    for (const char *p = s->text; p && *p;) {
        const char *e = strchr(p, '\n');
        const char *end = e ? e : p + strlen(p);
        while (p < end && (*p == ' ' || *p == '\t')) p++;
        if ((size_t)(end - p) > kl && !strncmp(p, key, kl)) {
            const char *v = p + kl;
            while (v < end && (*v == ' ' || *v == '\t')) v++;
            if (v < end && *v == '=') {
                v++;
                while (v < end && (*v == ' ' || *v == '\t')) v++;
                const char *z = v;
                while (z < end && !(*z == '#' && (z == v || z[-1] == ' '))) z++;
                while (z > v && (z[-1] == ' ' || z[-1] == '\t' || z[-1] == '\r')) z--;
                size_t n = (size_t)(z - v);
                if (n >= size) n = size - 1;
                memcpy(out, v, n); out[n] = 0; found = 1;
            }
        }
        p = e ? e + 1 : NULL;
    }
    return found;
}
/* A device's key: gpuN.key, then gpu*.key. */
static int dget(struct state *s, const struct dev *d, const char *key, char *out, size_t size) {
    char k[128];
    snprintf(k, sizeof k, "gpu%d.%s", d->gpu, key);
    if (get(s, k, out, size)) return 1;
    snprintf(k, sizeof k, "gpu*.%s", key);
    return get(s, k, out, size);
}
static u64 number(const char *t) {       /* decimal or 0x, fraction allowed, K M G T = powers of 1024 */
    char *e;
    if (t[0] == '0' && (t[1] == 'x' || t[1] == 'X')) return strtoull(t, NULL, 16);
    double whole = 0; u64 v = strtoull(t, &e, 10);
    if (*e == '.') { whole = strtod(t, &e); }
    double f = 1; u64 m = 1;
    switch (*e) { case 'K': case 'k': m = 1ull << 10; break; case 'M': m = 1ull << 20; break;
                  case 'G': m = 1ull << 30; break; case 'T': m = 1ull << 40; break; default: break; }
    f = (double)m;
    return whole != 0 ? (u64)(whole * f) : v * m;
}
static u64 num(struct state *s, const struct dev *d, const char *key, u64 dflt) {
    char v[64];
    return dget(s, d, key, v, sizeof v) ? number(v) : dflt;
}
static int code_of(const char *v) {      /* "ok", a name with or without NVML_ERROR_, or a number */
    if (!strcmp(v, "ok") || !*v) return OK;
    if (!strncmp(v, "NVML_ERROR_", 11)) v += 11;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (!strcmp(v, errors[i].name)) return errors[i].code;
    return *v >= '0' && *v <= '9' ? atoi(v) : UNKNOWN;
}
static void nap(const char *v) {
    long ms = strtol(v, NULL, 10);
    if (ms > 60000) ms = 60000;
    if (ms > 0) { struct timespec t = {ms / 1000, (ms % 1000) * 1000000L}; nanosleep(&t, NULL); }
}

/* Starts a query that needs no device. */
static ret_t begin(struct state *s, const char *group) {
    char v[64], k[64];
    pthread_mutex_lock(&lock); int up = inits; pthread_mutex_unlock(&lock);
    if (up <= 0) { s->text = NULL; return UNINITIALIZED; }
    *s = load();
    if (get(s, "sleep_ms", v, sizeof v)) nap(v);
    int c = OK;
    if (get(s, "error", v, sizeof v)) c = code_of(v);
    snprintf(k, sizeof k, "%s.error", group);
    if (c == OK && get(s, k, v, sizeof v)) c = code_of(v);
    if (c != OK) drop(s);
    return c;
}
static int gpu_count(struct state *s) {
    char v[32];
    int n = get(s, "count", v, sizeof v) ? atoi(v) : 1;
    return n < 0 ? 0 : n > MAX_GPU ? MAX_GPU : n;
}
/* Starts a query of a device: its group's fault, its own, then everything's. */
static ret_t dbegin(struct state *s, struct dev *d, const char *group) {
    char v[64], k[64];
    s->text = NULL;
    if (!d || d < &devs[0] || d > &devs[MAX_GPU - 1]) return INVALID_ARGUMENT;
    ret_t c = begin(s, "device");
    if (c != OK) return c;
    if (d->gpu >= gpu_count(s)) { drop(s); return GPU_IS_LOST; }
    if (dget(s, d, "sleep_ms", v, sizeof v)) nap(v);
    snprintf(k, sizeof k, "%s.sleep_ms", group);
    if (dget(s, d, k, v, sizeof v)) nap(v);
    if (dget(s, d, "error", v, sizeof v)) c = code_of(v);
    snprintf(k, sizeof k, "%s.error", group);
    if (c == OK && dget(s, d, k, v, sizeof v)) c = code_of(v);
    if (c != OK) drop(s);
    return c;
}
static ret_t put(char *out, u32 size, const char *text) {
    if (!out) return INVALID_ARGUMENT;
    if (strlen(text) + 1 > size) return INSUFFICIENT_SIZE;
    strcpy(out, text);
    return OK;
}
/* A device query that yields one number. */
static ret_t one(dev_t_ d, const char *group, const char *key, u64 dflt, int supported, u32 *out) {
    struct state s;
    char v[64];
    if (!out) return INVALID_ARGUMENT;
    ret_t c = dbegin(&s, d, group);
    if (c != OK) return c;
    if (dget(&s, d, key, v, sizeof v)) *out = (u32)number(v);
    else if (supported) *out = (u32)dflt;
    else c = NOT_SUPPORTED;
    drop(&s);
    return c;
}
static ret_t text(dev_t_ d, const char *group, const char *key, const char *dflt, char *out, u32 size) {
    struct state s;
    char v[128];
    ret_t c = dbegin(&s, d, group);
    if (c != OK) return c;
    if (!dget(&s, d, key, v, sizeof v)) { if (dflt) snprintf(v, sizeof v, "%s", dflt); else c = NOT_SUPPORTED; }
    drop(&s);
    return c == OK ? put(out, size, v) : c;
}

/* ---------------------------------------------------------------- init, system */
static ret_t do_init(void) {
    char v[64];
    struct state s = load();
    int c = OK;
    if (get(&s, "init.sleep_ms", v, sizeof v)) nap(v);
    if (get(&s, "init", v, sizeof v)) c = code_of(v);
    drop(&s);
    if (c != OK) return c;
    pthread_mutex_lock(&lock);
    for (int g = 0; g < MAX_GPU; g++) devs[g].gpu = g;
    inits++;
    pthread_mutex_unlock(&lock);
    return OK;
}
API ret_t nvmlInit_v2(void) { return do_init(); }
API ret_t nvmlShutdown(void) {
    pthread_mutex_lock(&lock);
    int c = inits > 0 ? (inits--, OK) : UNINITIALIZED;
    pthread_mutex_unlock(&lock);
    return c;
}
API const char *nvmlErrorString(ret_t r) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) if (errors[i].code == r) return errors[i].text;
    return "Unknown Error";
}
static ret_t sys_text(const char *group, const char *key, const char *dflt, char *out, u32 size) {
    struct state s; char v[96];
    ret_t c = begin(&s, group);
    if (c != OK) return c;
    if (!get(&s, key, v, sizeof v)) snprintf(v, sizeof v, "%s", dflt);
    drop(&s);
    return put(out, size, v);
}
API ret_t nvmlSystemGetDriverVersion(char *out, u32 n) { return sys_text("driver", "driver.version", "580.95.05", out, n); }

/* -------------------------------------------------------------- device handles */
static ret_t count(u32 *out) {
    struct state s;
    if (!out) return INVALID_ARGUMENT;
    ret_t c = begin(&s, "count");
    if (c != OK) return c;
    *out = (u32)gpu_count(&s);
    drop(&s);
    return OK;
}
API ret_t nvmlDeviceGetCount_v2(u32 *out) { return count(out); }
static ret_t by_index(u32 i, dev_t_ *out) {
    struct state s;
    if (!out) return INVALID_ARGUMENT;
    ret_t c = begin(&s, "count");
    if (c != OK) return c;
    int n = gpu_count(&s);
    drop(&s);
    if (i >= (u32)n) return INVALID_ARGUMENT;
    c = dbegin(&s, &devs[i], "handle");
    if (c != OK) return c;
    drop(&s);
    *out = &devs[i];
    return OK;
}
API ret_t nvmlDeviceGetHandleByIndex_v2(u32 i, dev_t_ *out) { return by_index(i, out); }

API ret_t nvmlDeviceGetUUID(dev_t_ d, char *out, u32 n) {
    char dflt[64];
    snprintf(dflt, sizeof dflt, "GPU-%08x-5b1e-4c0d-9a00-%012x", 0xc0c00000u + (d ? (u32)d->gpu : 0), d ? (u32)d->gpu : 0);
    return text(d, "uuid", "uuid", dflt, out, n);
}
API ret_t nvmlDeviceGetName(dev_t_ d, char *out, u32 n) { return text(d, "name", "name", "NVIDIA H100 80GB HBM3", out, n); }

/* ------------------------------------------------------------------- memory */
struct mem1 { u64 total, free, used; };
struct mem2 { u32 version; u64 total, reserved, free, used; };
static ret_t memory(dev_t_ d, struct mem2 *m) {
    struct state s;
    ret_t c = dbegin(&s, d, "mem");
    if (c != OK) return c;
    m->total = num(&s, d, "mem.total", 81559ull << 20);
    m->reserved = num(&s, d, "mem.reserved", 0);
    m->used = num(&s, d, "mem.used", 0);
    drop(&s);
    if (m->used + m->reserved > m->total) m->used = m->total > m->reserved ? m->total - m->reserved : 0;
    m->free = m->total - m->reserved - m->used;
    return OK;
}
API ret_t nvmlDeviceGetMemoryInfo(dev_t_ d, struct mem1 *out) {
    struct mem2 m;
    if (!out) return INVALID_ARGUMENT;
    ret_t c = memory(d, &m);
    if (c == OK) { out->total = m.total; out->free = m.free; out->used = m.used + m.reserved; }
    return c;
}
API ret_t nvmlDeviceGetMemoryInfo_v2(dev_t_ d, struct mem2 *out) {
    struct mem2 m;
    if (!out) return INVALID_ARGUMENT;
    if (out->version != (u32)(sizeof *out | (2u << 24))) return ARGUMENT_VERSION_MISMATCH;
    m.version = out->version;
    ret_t c = memory(d, &m);
    if (c == OK) *out = m;
    return c;
}

/* -------------------------------------------------------- load, heat, power */
struct util { u32 gpu, memory; };
API ret_t nvmlDeviceGetUtilizationRates(dev_t_ d, struct util *out) {
    if (!out) return INVALID_ARGUMENT;
    ret_t c = one(d, "util", "util", 0, 1, &out->gpu);
    return c == OK ? one(d, "util", "util.mem", 0, 1, &out->memory) : c;
}
API ret_t nvmlDeviceGetTemperature(dev_t_ d, u32 sensor, u32 *out) {
    if (sensor != 0) return INVALID_ARGUMENT;
    return one(d, "temp", "temp", 35, 1, out);
}
API ret_t nvmlDeviceGetPowerUsage(dev_t_ d, u32 *mw) { return one(d, "power", "power", 70000, 1, mw); }
API ret_t nvmlDeviceGetEnforcedPowerLimit(dev_t_ d, u32 *mw) { return one(d, "power.limit", "power.limit", 700000, 1, mw); }

/* ------------------------------------------------------------------ processes
 * procs = PID:BYTES[:C|G], ...   BYTES "-" = not available, as in MIG mode without rights. */
struct proc { u32 pid; u64 mem; u32 gi, ci; };
static ret_t procs(dev_t_ d, char type, u32 *n, struct proc *out) {
    struct state s;
    char v[4096], *save = NULL;
    if (!n) return INVALID_ARGUMENT;
    ret_t c = dbegin(&s, d, "procs");
    if (c != OK) return c;
    if (!dget(&s, d, "procs", v, sizeof v)) v[0] = 0;
    drop(&s);
    u32 have = 0, room = *n;
    for (char *t = strtok_r(v, ", ", &save); t; t = strtok_r(NULL, ", ", &save)) {
        struct proc q = {(u32)strtoul(t, NULL, 10), ~0ull, ~0u, ~0u};
        char *m = strchr(t, ':'), *k = m ? strchr(m + 1, ':') : NULL;
        if (m && m[1] != '-') q.mem = number(m + 1);
        if ((k ? k[1] : 'C') != type) continue;
        if (out && have < room) out[have] = q;
        have++;
    }
    *n = have;
    return room < have || (!out && have) ? INSUFFICIENT_SIZE : OK;
}
#define PROCS(name, type) \
    API ret_t name##_v2(dev_t_ d, u32 *n, void *o) { return procs(d, type, n, o); } \
    API ret_t name##_v3(dev_t_ d, u32 *n, void *o) { return procs(d, type, n, o); }
PROCS(nvmlDeviceGetComputeRunningProcesses, 'C')
PROCS(nvmlDeviceGetGraphicsRunningProcesses, 'G')
