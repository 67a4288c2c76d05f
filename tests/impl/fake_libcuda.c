/* A CUDA driver library without a GPU, to call through ctypes: copies are made at once, and calls are remembered.
 *
 * It is built by test_libcuda.py. FAKE_VERSION is the CUDA that it claims to be (12080 is 12.8). Where the headers of
 * CUDA 13.0 are at hand, CHECK_HEADERS has the compiler hold the signatures here against those of cudaTypedefs.h.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef CHECK_HEADERS
#include <cudaTypedefs.h>
#else
typedef int CUresult;
typedef unsigned long long CUdeviceptr_v2;
typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;
typedef struct context *CUcontext;
typedef struct stream *CUstream;
typedef int CUdriverProcAddressQueryResult;
typedef struct { int type, id; } Location;
typedef struct {
    int srcAccessOrder;
    Location srcLocHint, dstLocHint;
    unsigned int flags;
} CUmemcpyAttributes_v1;
#endif

#ifndef FAKE_VERSION
#define FAKE_VERSION 13000
#endif

struct record {
    int64_t batches, copies, order, bytes_of_attributes, waits, context, stream, value, flags, pushed;
    uint64_t address;
};
struct record record;

static CUresult batch(CUdeviceptr_v2 *dsts, CUdeviceptr_v2 *srcs, size_t *sizes, size_t count,
                      CUmemcpyAttributes_v1 *attrs, size_t *first, size_t kinds, size_t *failed, CUstream stream) {
    if (kinds != 1 || first[0] != 0 || attrs->flags || attrs->srcLocHint.type || attrs->dstLocHint.id) return 1;
    if (record.pushed != 1 || !stream) return 201;
    record.batches += 1;
    record.order = attrs->srcAccessOrder;
    record.bytes_of_attributes = sizeof *attrs;
    record.stream = (int64_t)stream;
    for (size_t i = 0; i < count; i++) {
        if (!sizes[i]) { *failed = i; return 1; }
        memcpy((void *)(uintptr_t)dsts[i], (void *)(uintptr_t)srcs[i], sizes[i]);
        record.copies += 1;
    }
    return 0;
}

static CUresult wait_value(CUstream stream, CUdeviceptr_v2 address, cuuint32_t value, unsigned int flags) {
    record.waits += 1;
    record.stream = (int64_t)stream;
    record.address = address;
    record.value = value;
    record.flags = flags;
    return record.pushed == 1 ? 0 : 201;
}

/* A GPU sees host memory 4096 bytes further up here, so that nobody can do without asking. */
static CUresult device_pointer(CUdeviceptr_v2 *seen, void *host, unsigned int flags) {
    *seen = (CUdeviceptr_v2)(uintptr_t)host + 4096;
    return flags ? 1 : 0;
}

static CUresult stream_context(CUstream stream, CUcontext *context) {
    *context = (CUcontext)((uintptr_t)stream + 7);
    return 0;
}

static CUresult push(CUcontext context) {
    record.context = (int64_t)context;
    record.pushed += 1;
    return 0;
}

static CUresult pop(CUcontext *context) {
    *context = (CUcontext)(uintptr_t)record.context;
    record.pushed -= 1;
    return 0;
}

static CUresult error_name(CUresult error, const char **name) {
    *name = error == 1 ? "CUDA_ERROR_INVALID_VALUE" : "CUDA_ERROR_INVALID_CONTEXT";
    return 0;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **found, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status) {
    static const struct { const char *name; int since; void *function; } functions[] = {
        {"cuMemcpyBatchAsync", 12080, (void *)batch},       {"cuStreamWaitValue32", 11070, (void *)wait_value},
        {"cuMemHostGetDevicePointer", 3020, (void *)device_pointer}, {"cuStreamGetCtx", 9020, (void *)stream_context},
        {"cuCtxPushCurrent", 4000, (void *)push},           {"cuCtxPopCurrent", 4000, (void *)pop},
        {"cuGetErrorName", 6000, (void *)error_name},
    };
    *found = NULL;
    if (version > FAKE_VERSION || flags || status) return 1;
    /* The other cuMemcpyBatchAsync, of another signature. */
    if (!strcmp(symbol, "cuMemcpyBatchAsync") && version >= 13000) return 0;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!strcmp(symbol, functions[i].name) && version >= functions[i].since) *found = functions[i].function;
    return 0;
}

#ifdef CHECK_HEADERS
PFN_cuMemcpyBatchAsync_v12080 check_batch = batch;
PFN_cuStreamWaitValue32_v11070 check_wait_value = wait_value;
PFN_cuMemHostGetDevicePointer_v3020 check_device_pointer = device_pointer;
PFN_cuStreamGetCtx_v9020 check_stream_context = stream_context;
PFN_cuCtxPushCurrent_v4000 check_push = push;
PFN_cuCtxPopCurrent_v4000 check_pop = pop;
PFN_cuGetErrorName_v6000 check_error_name = error_name;
PFN_cuGetProcAddress_v12000 check_get_address = cuGetProcAddress_v2;
_Static_assert(CU_MEMCPY_SRC_ACCESS_ORDER_STREAM == 1 && CU_STREAM_WAIT_VALUE_GEQ == 0, "constants of libcuda.py");
_Static_assert(sizeof(CUmemcpyAttributes_v1) == 24, "attributes of libcuda.py");
#endif
