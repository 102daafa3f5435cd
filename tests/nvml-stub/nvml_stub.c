/* A stand-in for NVIDIA's libnvidia-ml.so.1, for tests on machines without a GPU.
 *
 * Written from NVIDIA's public NVML reference (function names, argument order, enum values and structure layouts); it has the calls that
 * vramp and other monitors make and no code of NVIDIA's. Every query reads a text file anew, so that a test moves memory, load and faults over time by
 * writing it (a temporary file, renamed over the old one). README.md lists its keys. Without the file: one idle card.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
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
#define MAX_MIG 7
struct dev { int gpu, mig; };            /* mig < 0: the whole GPU */
typedef struct dev *dev_t_;
static struct dev devs[MAX_GPU][MAX_MIG + 1];
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
/* A device's key: gpuN.migM.key, then gpuN.key, then gpu*.key. */
static int dget(struct state *s, const struct dev *d, const char *key, char *out, size_t size) {
    char k[128];
    if (d->mig >= 0) {
        snprintf(k, sizeof k, "gpu%d.mig%d.%s", d->gpu, d->mig, key);
        if (get(s, k, out, size)) return 1;
    }
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
    if (!d || d < &devs[0][0] || d > &devs[MAX_GPU - 1][MAX_MIG]) return INVALID_ARGUMENT;
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
    for (int g = 0; g < MAX_GPU; g++)
        for (int m = 0; m <= MAX_MIG; m++) { devs[g][m].gpu = g; devs[g][m].mig = m - 1; }
    inits++;
    pthread_mutex_unlock(&lock);
    return OK;
}
API ret_t nvmlInit_v2(void) { return do_init(); }
API ret_t nvmlInit(void) { return do_init(); }
API ret_t nvmlInitWithFlags(u32 flags) { (void)flags; return do_init(); }
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
API ret_t nvmlSystemGetNVMLVersion(char *out, u32 n) { return sys_text("nvml", "nvml.version", "13.580.95.05", out, n); }
static ret_t cuda(int *out) {
    struct state s; char v[32];
    if (!out) return INVALID_ARGUMENT;
    ret_t c = begin(&s, "cuda");
    if (c != OK) return c;
    *out = get(&s, "cuda.version", v, sizeof v) ? atoi(v) : 13000;
    drop(&s);
    return OK;
}
API ret_t nvmlSystemGetCudaDriverVersion(int *out) { return cuda(out); }
API ret_t nvmlSystemGetCudaDriverVersion_v2(int *out) { return cuda(out); }
API ret_t nvmlSystemGetProcessName(u32 pid, char *out, u32 n) {
    struct state s; char path[64], b[256];
    ret_t c = begin(&s, "process");
    if (c != OK) return c;
    drop(&s);
    if (!out || !n) return INVALID_ARGUMENT;
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return NOT_FOUND;
    ssize_t r = read(fd, b, sizeof b - 1);
    close(fd);
    b[r > 0 ? r : 0] = 0;
    snprintf(out, n, "%s", b);
    return OK;
}

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
API ret_t nvmlDeviceGetCount(u32 *out) { return count(out); }
static ret_t by_index(u32 i, dev_t_ *out) {
    struct state s;
    if (!out) return INVALID_ARGUMENT;
    ret_t c = begin(&s, "count");
    if (c != OK) return c;
    int n = gpu_count(&s);
    drop(&s);
    if (i >= (u32)n) return INVALID_ARGUMENT;
    c = dbegin(&s, &devs[i][0], "handle");
    if (c != OK) return c;
    drop(&s);
    *out = &devs[i][0];
    return OK;
}
API ret_t nvmlDeviceGetHandleByIndex_v2(u32 i, dev_t_ *out) { return by_index(i, out); }
API ret_t nvmlDeviceGetHandleByIndex(u32 i, dev_t_ *out) { return by_index(i, out); }

static void uuid_of(struct state *s, struct dev *d, char *out, size_t n) {
    char k[64];
    if (d->mig < 0) {
        if (!dget(s, d, "uuid", out, n)) snprintf(out, n, "GPU-%08x-5b1e-4c0d-9a00-%012x", 0xc0c00000u + (u32)d->gpu, (u32)d->gpu);
        return;
    }
    snprintf(k, sizeof k, "gpu%d.mig%d.uuid", d->gpu, d->mig);
    if (!get(s, k, out, n)) snprintf(out, n, "MIG-%08x-5b1e-4c0d-9a%02x-%012x", 0xc0c00000u + (u32)d->gpu, d->mig + 1, (u32)d->gpu);
}
static int mig_count(struct state *s, struct dev *d) {
    int n = (int)num(s, &(struct dev){d->gpu, -1}, "mig.count", 0);
    return n > MAX_MIG ? MAX_MIG : n;
}
static void bus_id(struct state *s, struct dev *d, char *out, size_t n) {
    if (!dget(s, &(struct dev){d->gpu, -1}, "pci", out, n)) snprintf(out, n, "00000000:%02X:00.0", 0x10 + d->gpu);
}
API ret_t nvmlDeviceGetHandleByUUID(const char *uuid, dev_t_ *out) {
    struct state s; char v[96];
    if (!uuid || !out) return INVALID_ARGUMENT;
    ret_t c = begin(&s, "count");
    if (c != OK) return c;
    c = NOT_FOUND;
    for (int g = 0; g < gpu_count(&s) && c == NOT_FOUND; g++)
        for (int m = 0; m <= mig_count(&s, &devs[g][0]); m++) {
            uuid_of(&s, &devs[g][m], v, sizeof v);
            if (!strcmp(v, uuid)) { *out = &devs[g][m]; c = OK; break; }
        }
    drop(&s);
    return c;
}
static ret_t by_pci(const char *id, dev_t_ *out) {
    struct state s; char v[64];
    if (!id || !out) return INVALID_ARGUMENT;
    ret_t c = begin(&s, "count");
    if (c != OK) return c;
    c = NOT_FOUND;
    for (int g = 0; g < gpu_count(&s); g++) {
        bus_id(&s, &devs[g][0], v, sizeof v);
        size_t a = strlen(v), b = strlen(id);
        if (!strcasecmp(v, id) || (a > b && !strcasecmp(v + (a - b), id))) { *out = &devs[g][0]; c = OK; break; }
    }
    drop(&s);
    return c;
}
API ret_t nvmlDeviceGetHandleByPciBusId_v2(const char *id, dev_t_ *out) { return by_pci(id, out); }
API ret_t nvmlDeviceGetHandleByPciBusId(const char *id, dev_t_ *out) { return by_pci(id, out); }
API ret_t nvmlDeviceGetIndex(dev_t_ d, u32 *out) {
    struct state s;
    if (!out) return INVALID_ARGUMENT;
    ret_t c = dbegin(&s, d, "index");
    if (c != OK) return c;
    drop(&s);
    *out = (u32)(d->mig < 0 ? d->gpu : d->mig);
    return OK;
}
API ret_t nvmlDeviceGetMinorNumber(dev_t_ d, u32 *out) { return one(d, "index", "minor", d ? (u64)d->gpu : 0, 1, out); }

/* ---------------------------------------------------------------- what it is */
API ret_t nvmlDeviceGetName(dev_t_ d, char *out, u32 n) {
    struct state s; char v[96], m[64], k[64];
    ret_t c = dbegin(&s, d, "name");
    if (c != OK) return c;
    if (!dget(&s, &(struct dev){d->gpu, -1}, "name", v, sizeof v)) snprintf(v, sizeof v, "NVIDIA H100 80GB HBM3");
    if (d->mig >= 0) {
        snprintf(k, sizeof k, "gpu%d.mig%d.profile", d->gpu, d->mig);
        if (!get(&s, k, m, sizeof m)) snprintf(m, sizeof m, "1g.10gb");
        size_t l = strlen(v); snprintf(v + l, sizeof v - l, " MIG %s", m);
    }
    drop(&s);
    return put(out, n, v);
}
API ret_t nvmlDeviceGetUUID(dev_t_ d, char *out, u32 n) {
    struct state s; char v[96];
    ret_t c = dbegin(&s, d, "uuid");
    if (c != OK) return c;
    uuid_of(&s, d, v, sizeof v);
    drop(&s);
    return put(out, n, v);
}
API ret_t nvmlDeviceGetSerial(dev_t_ d, char *out, u32 n) { return text(d, "serial", "serial", NULL, out, n); }
API ret_t nvmlDeviceGetVbiosVersion(dev_t_ d, char *out, u32 n) { return text(d, "vbios", "vbios", "96.00.89.00.01", out, n); }
API ret_t nvmlDeviceGetBoardPartNumber(dev_t_ d, char *out, u32 n) { return text(d, "part", "part", NULL, out, n); }
API ret_t nvmlDeviceGetBrand(dev_t_ d, u32 *out) { return one(d, "brand", "brand", 14 /* NVIDIA */, 1, out); }
API ret_t nvmlDeviceGetArchitecture(dev_t_ d, u32 *out) { return one(d, "arch", "arch", 9 /* Hopper */, 1, out); }
API ret_t nvmlDeviceGetNumGpuCores(dev_t_ d, u32 *out) { return one(d, "cores", "cores", 16896, 1, out); }
API ret_t nvmlDeviceGetMemoryBusWidth(dev_t_ d, u32 *out) { return one(d, "mem.bus", "mem.bus", 5120, 1, out); }
API ret_t nvmlDeviceGetBoardId(dev_t_ d, u32 *out) { return one(d, "board", "board", 0x1000, 1, out); }
API ret_t nvmlDeviceGetMultiGpuBoard(dev_t_ d, u32 *out) { return one(d, "board", "board.multi", 0, 1, out); }
API ret_t nvmlDeviceGetDisplayMode(dev_t_ d, u32 *out) { return one(d, "display", "display.mode", 0, 1, out); }
API ret_t nvmlDeviceGetDisplayActive(dev_t_ d, u32 *out) { return one(d, "display", "display.active", 0, 1, out); }
API ret_t nvmlDeviceGetPersistenceMode(dev_t_ d, u32 *out) { return one(d, "persistence", "persistence", 1, 1, out); }
API ret_t nvmlDeviceGetComputeMode(dev_t_ d, u32 *out) { return one(d, "compute_mode", "compute_mode", 0, 1, out); }
API ret_t nvmlDeviceGetDriverModel(dev_t_ d, u32 *cur, u32 *pend) { (void)d; (void)cur; (void)pend; return NOT_SUPPORTED; } /* Windows alone */
API ret_t nvmlDeviceGetDriverModel_v2(dev_t_ d, u32 *cur, u32 *pend) { (void)d; (void)cur; (void)pend; return NOT_SUPPORTED; }
API ret_t nvmlDeviceGetCudaComputeCapability(dev_t_ d, int *major, int *minor) {
    struct state s; char v[32];
    if (!major || !minor) return INVALID_ARGUMENT;
    ret_t c = dbegin(&s, d, "cc");
    if (c != OK) return c;
    if (!dget(&s, d, "cc", v, sizeof v)) strcpy(v, "9.0");
    *major = atoi(v); char *p = strchr(v, '.'); *minor = p ? atoi(p + 1) : 0;
    drop(&s);
    return OK;
}
struct pci { char legacy[16]; u32 domain, bus, device, id, sub; char bus_id[32]; };
static ret_t pci(dev_t_ d, void *out, int v3) {
    struct state s; char v[32]; struct pci p; unsigned dom = 0, bus = 0, dv = 0;
    if (!out) return INVALID_ARGUMENT;
    ret_t c = dbegin(&s, d, "pci");
    if (c != OK) return c;
    bus_id(&s, d, v, sizeof v);
    memset(&p, 0, sizeof p);
    sscanf(v, "%x:%x:%x", &dom, &bus, &dv);
    p.domain = dom; p.bus = bus; p.device = dv;
    snprintf(p.legacy, sizeof p.legacy, "%04X:%02X:%02X.0", dom & 0xffff, bus & 0xff, dv & 0xff);
    snprintf(p.bus_id, sizeof p.bus_id, "%s", v);
    p.id = (u32)num(&s, d, "pci.id", 0x233010de); p.sub = (u32)num(&s, d, "pci.sub", 0x16c110de);
    drop(&s);
    memcpy(out, &p, v3 ? sizeof p : 36);
    return OK;
}
API ret_t nvmlDeviceGetPciInfo_v3(dev_t_ d, void *o) { return pci(d, o, 1); }
API ret_t nvmlDeviceGetPciInfo_v2(dev_t_ d, void *o) { return pci(d, o, 0); }
API ret_t nvmlDeviceGetPciInfo(dev_t_ d, void *o) { return pci(d, o, 0); }

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
API ret_t nvmlDeviceGetBAR1MemoryInfo(dev_t_ d, struct mem1 *out) {   /* order: total, free, used */
    struct state s;
    if (!out) return INVALID_ARGUMENT;
    ret_t c = dbegin(&s, d, "bar1");
    if (c != OK) return c;
    out->total = num(&s, d, "bar1.total", 128ull << 30); out->used = num(&s, d, "bar1.used", 1 << 20);
    out->free = out->total - out->used;
    drop(&s);
    return OK;
}

/* --------------------------------------------------- load, heat, power, clocks */
struct util { u32 gpu, memory; };
API ret_t nvmlDeviceGetUtilizationRates(dev_t_ d, struct util *out) {
    struct state s;
    if (!out) return INVALID_ARGUMENT;
    ret_t c = dbegin(&s, d, "util");
    if (c != OK) return c;
    char v[16];
    if (d->mig >= 0 || (dget(&s, d, "mig", v, sizeof v) && atoi(v) && !dget(&s, d, "util.mig", v, sizeof v))) c = NOT_SUPPORTED; /* as in MIG mode */
    else { out->gpu = (u32)num(&s, d, "util", 0); out->memory = (u32)num(&s, d, "util.mem", 0); }
    drop(&s);
    return c;
}
static ret_t coder(dev_t_ d, const char *key, u32 *util, u32 *period) {
    if (period) *period = 167000;
    return one(d, key, key, 0, 1, util);
}
API ret_t nvmlDeviceGetEncoderUtilization(dev_t_ d, u32 *u, u32 *p) { return coder(d, "enc", u, p); }
API ret_t nvmlDeviceGetDecoderUtilization(dev_t_ d, u32 *u, u32 *p) { return coder(d, "dec", u, p); }
API ret_t nvmlDeviceGetJpgUtilization(dev_t_ d, u32 *u, u32 *p) { return coder(d, "jpg", u, p); }
API ret_t nvmlDeviceGetOfaUtilization(dev_t_ d, u32 *u, u32 *p) { return coder(d, "ofa", u, p); }
API ret_t nvmlDeviceGetTemperature(dev_t_ d, u32 sensor, u32 *out) {
    if (sensor != 0) return INVALID_ARGUMENT;
    return one(d, "temp", "temp", 35, 1, out);
}
struct temp_v1 { u32 version; int sensor, temperature; };
API ret_t nvmlDeviceGetTemperatureV(dev_t_ d, struct temp_v1 *t) {
    u32 v;
    if (!t) return INVALID_ARGUMENT;
    if (t->version != (u32)(sizeof *t | (1u << 24))) return ARGUMENT_VERSION_MISMATCH;
    ret_t c = nvmlDeviceGetTemperature(d, (u32)t->sensor, &v);
    if (c == OK) t->temperature = (int)v;
    return c;
}
API ret_t nvmlDeviceGetTemperatureThreshold(dev_t_ d, u32 which, u32 *out) {
    static const u32 t[] = {92, 89, 95, 87};
    char k[32];
    if (which > 3) return one(d, "temp.limit", "temp.limit.none", 0, 0, out);
    snprintf(k, sizeof k, "temp.limit%u", which);
    return one(d, "temp.limit", k, t[which], 1, out);
}
API ret_t nvmlDeviceGetPowerUsage(dev_t_ d, u32 *mw) { return one(d, "power", "power", 70000, 1, mw); }
API ret_t nvmlDeviceGetEnforcedPowerLimit(dev_t_ d, u32 *mw) { return one(d, "power.limit", "power.limit", 700000, 1, mw); }
API ret_t nvmlDeviceGetPowerManagementLimit(dev_t_ d, u32 *mw) { return one(d, "power.limit", "power.limit", 700000, 1, mw); }
API ret_t nvmlDeviceGetPowerManagementDefaultLimit(dev_t_ d, u32 *mw) { return one(d, "power.limit", "power.limit.default", 700000, 1, mw); }
API ret_t nvmlDeviceGetPowerManagementMode(dev_t_ d, u32 *on) { return one(d, "power.mode", "power.mode", 1, 1, on); }
API ret_t nvmlDeviceGetPowerManagementLimitConstraints(dev_t_ d, u32 *lo, u32 *hi) {
    ret_t c = one(d, "power.limit", "power.limit.min", 200000, 1, lo);
    return c == OK ? one(d, "power.limit", "power.limit.max", 700000, 1, hi) : c;
}
API ret_t nvmlDeviceGetTotalEnergyConsumption(dev_t_ d, u64 *mj) {
    struct state s;
    if (!mj) return INVALID_ARGUMENT;
    ret_t c = dbegin(&s, d, "energy");
    if (c != OK) return c;
    *mj = num(&s, d, "energy", 0);
    drop(&s);
    return OK;
}
static const char *const clock_names[] = {"clock.gr", "clock.sm", "clock.mem", "clock.video"};
static const u32 clock_now[] = {345, 345, 2619, 765}, clock_max[] = {1980, 1980, 2619, 1545};
static ret_t clk(dev_t_ d, u32 type, int max, u32 *out) {
    char k[32];
    if (type > 3) return INVALID_ARGUMENT;
    snprintf(k, sizeof k, "%s%s", clock_names[type], max ? ".max" : "");
    return one(d, "clock", k, max ? clock_max[type] : clock_now[type], 1, out);
}
API ret_t nvmlDeviceGetClockInfo(dev_t_ d, u32 type, u32 *mhz) { return clk(d, type, 0, mhz); }
API ret_t nvmlDeviceGetMaxClockInfo(dev_t_ d, u32 type, u32 *mhz) { return clk(d, type, 1, mhz); }
API ret_t nvmlDeviceGetClock(dev_t_ d, u32 type, u32 id, u32 *mhz) { return clk(d, type, id == 3, mhz); }
API ret_t nvmlDeviceGetApplicationsClock(dev_t_ d, u32 type, u32 *mhz) { return clk(d, type, 1, mhz); }
API ret_t nvmlDeviceGetDefaultApplicationsClock(dev_t_ d, u32 type, u32 *mhz) { return clk(d, type, 1, mhz); }
API ret_t nvmlDeviceGetMaxCustomerBoostClock(dev_t_ d, u32 type, u32 *mhz) { return clk(d, type, 1, mhz); }
/* Fans: none unless "fans" says how many (data-centre cards have none). */
API ret_t nvmlDeviceGetNumFans(dev_t_ d, u32 *n) { return one(d, "fan", "fans", 0, 1, n); }
static ret_t fan(dev_t_ d, u32 i, u32 *pct) {
    char k[32]; u32 n = 0;
    ret_t c = one(d, "fan", "fans", 0, 1, &n);
    if (c != OK) return c;
    if (n == 0) return NOT_SUPPORTED;
    if (i >= n) return INVALID_ARGUMENT;
    snprintf(k, sizeof k, "fan%u", i);
    return one(d, "fan", k, 30, 1, pct);
}
API ret_t nvmlDeviceGetFanSpeed(dev_t_ d, u32 *pct) { return fan(d, 0, pct); }
API ret_t nvmlDeviceGetFanSpeed_v2(dev_t_ d, u32 i, u32 *pct) { return fan(d, i, pct); }
API ret_t nvmlDeviceGetPerformanceState(dev_t_ d, u32 *p) { return one(d, "pstate", "pstate", 0, 1, p); }
API ret_t nvmlDeviceGetPowerState(dev_t_ d, u32 *p) { return one(d, "pstate", "pstate", 0, 1, p); }
static ret_t reasons(dev_t_ d, const char *key, u64 dflt, u64 *out) {
    struct state s;
    if (!out) return INVALID_ARGUMENT;
    ret_t c = dbegin(&s, d, "throttle");
    if (c != OK) return c;
    *out = num(&s, d, key, dflt);
    drop(&s);
    return OK;
}
API ret_t nvmlDeviceGetCurrentClocksThrottleReasons(dev_t_ d, u64 *r) { return reasons(d, "throttle", 0, r); }
API ret_t nvmlDeviceGetCurrentClocksEventReasons(dev_t_ d, u64 *r) { return reasons(d, "throttle", 0, r); }
API ret_t nvmlDeviceGetSupportedClocksThrottleReasons(dev_t_ d, u64 *r) { return reasons(d, "throttle.supported", 0x1ff, r); }
API ret_t nvmlDeviceGetSupportedClocksEventReasons(dev_t_ d, u64 *r) { return reasons(d, "throttle.supported", 0x1ff, r); }

/* --------------------------------------------------------------- PCIe, NVLink */
API ret_t nvmlDeviceGetPcieThroughput(dev_t_ d, u32 counter, u32 *kbs) {
    if (counter > 1) return INVALID_ARGUMENT;
    return one(d, "pcie", counter == 0 ? "pcie.tx" : "pcie.rx", 0, 1, kbs);
}
API ret_t nvmlDeviceGetCurrPcieLinkGeneration(dev_t_ d, u32 *o) { return one(d, "pcie", "pcie.gen", 5, 1, o); }
API ret_t nvmlDeviceGetMaxPcieLinkGeneration(dev_t_ d, u32 *o) { return one(d, "pcie", "pcie.gen.max", 5, 1, o); }
API ret_t nvmlDeviceGetGpuMaxPcieLinkGeneration(dev_t_ d, u32 *o) { return one(d, "pcie", "pcie.gen.max", 5, 1, o); }
API ret_t nvmlDeviceGetCurrPcieLinkWidth(dev_t_ d, u32 *o) { return one(d, "pcie", "pcie.width", 16, 1, o); }
API ret_t nvmlDeviceGetMaxPcieLinkWidth(dev_t_ d, u32 *o) { return one(d, "pcie", "pcie.width.max", 16, 1, o); }
API ret_t nvmlDeviceGetPcieReplayCounter(dev_t_ d, u32 *o) { return one(d, "pcie", "pcie.replay", 0, 1, o); }
API ret_t nvmlDeviceGetNvLinkState(dev_t_ d, u32 link, u32 *on) {
    u32 n = 0;
    ret_t c = one(d, "nvlink", "nvlink.links", 0, 1, &n);
    if (c != OK) return c;
    if (link >= 18) return INVALID_ARGUMENT;
    if (n == 0) return NOT_SUPPORTED;
    if (!on) return INVALID_ARGUMENT;
    *on = link < n;
    return OK;
}
API ret_t nvmlDeviceGetNvLinkVersion(dev_t_ d, u32 link, u32 *v) { (void)link; return one(d, "nvlink", "nvlink.version", 0, 0, v); }

/* ------------------------------------------------------------------ processes
 * procs = PID:BYTES[:C|G[:SM%]], ...   BYTES "-" = not available, as in MIG mode without rights. */
struct proc { u32 pid; u64 mem; u32 gi, ci; char type; u32 sm; };
static int procs_of(struct state *s, struct dev *d, char type, struct proc *p, int max) {
    char v[4096]; int n = 0; char *save = NULL;
    if (!dget(s, d, "procs", v, sizeof v)) return 0;
    for (char *t = strtok_r(v, ", ", &save); t && n < max; t = strtok_r(NULL, ", ", &save)) {
        struct proc q = {(u32)strtoul(t, NULL, 10), ~0ull, ~0u, ~0u, 'C', 0};
        char *c = strchr(t, ':');
        if (c) { if (c[1] != '-') q.mem = number(c + 1);
                 if ((c = strchr(c + 1, ':'))) { q.type = c[1]; if ((c = strchr(c + 1, ':'))) q.sm = (u32)atoi(c + 1); } }
        if (d->mig >= 0) { q.gi = (u32)d->mig + 1; q.ci = 0; }
        if (!type || q.type == type) p[n++] = q;
    }
    return n;
}
struct pi1 { u32 pid; u64 mem; };
struct pi2 { u32 pid; u64 mem; u32 gi, ci; };
static ret_t procs(dev_t_ d, char type, u32 *n, void *out, int v1) {
    struct state s; struct proc p[256];
    if (!n) return INVALID_ARGUMENT;
    ret_t c = dbegin(&s, d, "procs");
    if (c != OK) return c;
    int have = procs_of(&s, d, type, p, 256);
    drop(&s);
    u32 room = *n;
    *n = (u32)have;
    if (room < (u32)have || (!out && have)) return INSUFFICIENT_SIZE;
    for (int i = 0; i < have; i++) {
        if (v1) ((struct pi1 *)out)[i] = (struct pi1){p[i].pid, p[i].mem};
        else ((struct pi2 *)out)[i] = (struct pi2){p[i].pid, p[i].mem, p[i].gi, p[i].ci};
    }
    return OK;
}
#define PROCS(name, type) \
    API ret_t name(dev_t_ d, u32 *n, void *o) { return procs(d, type, n, o, 1); } \
    API ret_t name##_v2(dev_t_ d, u32 *n, void *o) { return procs(d, type, n, o, 0); } \
    API ret_t name##_v3(dev_t_ d, u32 *n, void *o) { return procs(d, type, n, o, 0); }
PROCS(nvmlDeviceGetComputeRunningProcesses, 'C')
PROCS(nvmlDeviceGetGraphicsRunningProcesses, 'G')
PROCS(nvmlDeviceGetMPSComputeRunningProcesses, 'M')
struct pus { u32 pid; u64 when; u32 sm, mem, enc, dec; };
API ret_t nvmlDeviceGetProcessUtilization(dev_t_ d, struct pus *out, u32 *n, u64 last) {
    struct state s; struct proc p[256]; struct timespec t;
    (void)last;
    if (!n) return INVALID_ARGUMENT;
    ret_t c = dbegin(&s, d, "procs.util");
    if (c != OK) return c;
    int have = procs_of(&s, d, 0, p, 256);
    drop(&s);
    u32 room = *n;
    *n = (u32)have;
    if (!have) return NOT_FOUND;
    if (!out || room < (u32)have) return INSUFFICIENT_SIZE;
    clock_gettime(CLOCK_REALTIME, &t);
    for (int i = 0; i < have; i++)
        out[i] = (struct pus){p[i].pid, (u64)t.tv_sec * 1000000ull + (u64)t.tv_nsec / 1000, p[i].sm, 0, 0, 0};
    return OK;
}

/* ------------------------------------------------------------------- MIG, ECC */
API ret_t nvmlDeviceGetMigMode(dev_t_ d, u32 *cur, u32 *pend) {
    ret_t c = one(d, "mig", "mig", 0, 0, cur);          /* NOT_SUPPORTED unless the file has "mig" */
    return c == OK && pend ? one(d, "mig", "mig.pending", *cur, 1, pend) : c;
}
API ret_t nvmlDeviceIsMigDeviceHandle(dev_t_ d, u32 *is) {
    if (!d || !is) return INVALID_ARGUMENT;
    *is = d->mig >= 0;
    return OK;
}
API ret_t nvmlDeviceGetMaxMigDeviceCount(dev_t_ d, u32 *n) {
    u32 m; ret_t c = one(d, "mig", "mig", 0, 0, &m);
    if (c != OK) { if (n && c == NOT_SUPPORTED) { *n = 0; return OK; } return c; }
    if (!n) return INVALID_ARGUMENT;
    *n = MAX_MIG;
    return OK;
}
API ret_t nvmlDeviceGetMigDeviceHandleByIndex(dev_t_ d, u32 i, dev_t_ *out) {
    struct state s;
    if (!out) return INVALID_ARGUMENT;
    ret_t c = dbegin(&s, d, "mig");
    if (c != OK) return c;
    if ((int)i >= mig_count(&s, d) || d->mig >= 0) c = NOT_FOUND; else *out = &devs[d->gpu][i + 1];
    drop(&s);
    return c;
}
API ret_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(dev_t_ d, dev_t_ *out) {
    if (!d || !out || d->mig < 0) return INVALID_ARGUMENT;
    *out = &devs[d->gpu][0];
    return OK;
}
API ret_t nvmlDeviceGetGpuInstanceId(dev_t_ d, u32 *id) { if (!d || !id) return INVALID_ARGUMENT; if (d->mig < 0) return NOT_SUPPORTED; *id = (u32)d->mig + 1; return OK; }
API ret_t nvmlDeviceGetComputeInstanceId(dev_t_ d, u32 *id) { if (!d || !id) return INVALID_ARGUMENT; if (d->mig < 0) return NOT_SUPPORTED; *id = 0; return OK; }
API ret_t nvmlDeviceGetEccMode(dev_t_ d, u32 *cur, u32 *pend) {
    ret_t c = one(d, "ecc", "ecc", 1, 1, cur);
    return c == OK && pend ? one(d, "ecc", "ecc.pending", *cur, 1, pend) : c;
}
static ret_t ecc(dev_t_ d, u32 type, u32 counter, u64 *out) {
    struct state s; char k[48];
    if (!out || type > 1 || counter > 1) return INVALID_ARGUMENT;
    ret_t c = dbegin(&s, d, "ecc");
    if (c != OK) return c;
    snprintf(k, sizeof k, "ecc.%s.%s", type ? "uncorrected" : "corrected", counter ? "total" : "now");
    *out = num(&s, d, "ecc", 1) ? num(&s, d, k, 0) : 0;
    if (!num(&s, d, "ecc", 1)) c = NOT_SUPPORTED;
    drop(&s);
    return c;
}
API ret_t nvmlDeviceGetTotalEccErrors(dev_t_ d, u32 type, u32 counter, u64 *out) { return ecc(d, type, counter, out); }
API ret_t nvmlDeviceGetMemoryErrorCounter(dev_t_ d, u32 type, u32 counter, u32 where, u64 *out) {
    ret_t c = ecc(d, type, counter, out);
    if (c == OK && where != 2) *out = 0;                /* all of them in device memory */
    return c;
}
API ret_t nvmlDeviceGetRetiredPagesPendingStatus(dev_t_ d, u32 *o) { return one(d, "retired", "retired.pending", 0, 1, o); }
API ret_t nvmlDeviceGetRemappedRows(dev_t_ d, u32 *corr, u32 *unc, u32 *pend, u32 *fail) {
    ret_t c = one(d, "remap", "remap.corrected", 0, 1, corr);
    if (c == OK) c = one(d, "remap", "remap.uncorrected", 0, 1, unc);
    if (c == OK) c = one(d, "remap", "remap.pending", 0, 1, pend);
    return c == OK ? one(d, "remap", "remap.failed", 0, 1, fail) : c;
}

/* ------------------------------------------------------------- field values */
struct field { u32 id, scope; long long when, latency; u32 type; ret_t ret; union { double d; u32 ui; u64 ull; } v; };
API ret_t nvmlDeviceGetFieldValues(dev_t_ d, int n, struct field *f) {
    struct state s; struct timespec t; char v[64];
    if (!f || n <= 0) return INVALID_ARGUMENT;
    ret_t c = dbegin(&s, d, "fields");
    if (c != OK) return c;
    clock_gettime(CLOCK_REALTIME, &t);
    for (int i = 0; i < n; i++) {
        const char *k = f[i].id == 82 ? "temp.mem" : f[i].id == 83 ? "energy" : f[i].id == 185 || f[i].id == 186 ? "power" : NULL;
        char other[24];
        if (!k) { snprintf(other, sizeof other, "field.%u", f[i].id); k = other; }
        f[i].when = (long long)t.tv_sec * 1000000ll + t.tv_nsec / 1000; f[i].latency = 0;
        f[i].type = f[i].id == 83 ? 3 : 1; f[i].v.ull = 0; f[i].ret = NOT_SUPPORTED;
        if (dget(&s, d, k, v, sizeof v)) { f[i].ret = OK; f[i].v.ull = number(v); }
    }
    drop(&s);
    return OK;
}

/* ------------------------------------------------------------------- events
 * xid = CODE [words that tell two alike apart]: delivered once to every set, and again when the line changes. */
struct set { char seen[MAX_GPU][32]; u32 watched; };
struct event { dev_t_ device; u64 type, data; u32 gi, ci; };
API ret_t nvmlEventSetCreate(struct set **out) {
    struct state s;
    if (!out) return INVALID_ARGUMENT;
    ret_t c = begin(&s, "events");
    if (c != OK) return c;
    drop(&s);
    *out = calloc(1, sizeof **out);
    return *out ? OK : UNKNOWN;
}
API ret_t nvmlEventSetFree(struct set *set) { free(set); return OK; }
API ret_t nvmlDeviceGetSupportedEventTypes(dev_t_ d, u64 *types) { return reasons(d, "events", 0x1f, types); }
API ret_t nvmlDeviceRegisterEvents(dev_t_ d, u64 types, struct set *set) {
    struct state s;
    if (!set || !types) return INVALID_ARGUMENT;
    ret_t c = dbegin(&s, d, "events");
    if (c != OK) return c;
    drop(&s);
    set->watched |= 1u << d->gpu;
    return OK;
}
API ret_t nvmlEventSetWait_v2(struct set *set, struct event *out, u32 timeout_ms) {
    struct state s; char v[32];
    if (!set || !out) return INVALID_ARGUMENT;
    ret_t c = begin(&s, "events");
    if (c != OK) return c;
    c = TIMEOUT;
    for (int g = 0; g < MAX_GPU && c == TIMEOUT; g++) {
        struct dev *d = &devs[g][0];
        if (!(set->watched >> g & 1) || !dget(&s, d, "xid", v, sizeof v) || !strcmp(v, set->seen[g])) continue;
        snprintf(set->seen[g], sizeof set->seen[g], "%s", v);
        *out = (struct event){d, 8, strtoull(v, NULL, 10), ~0u, ~0u};
        c = OK;
    }
    drop(&s);
    if (c == TIMEOUT && timeout_ms) usleep(timeout_ms * 1000);
    return c;
}
