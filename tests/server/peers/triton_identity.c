/* A Triton back end that answers with its input: what Triton itself costs, with no interpreter in the way.
 *
 * The wheel carries no headers, so the few functions that are called are declared here as Triton's C API has them. */
#include <stdint.h>
#include <string.h>

typedef struct Error Error;
typedef struct Request Request;
typedef struct Input Input;
typedef struct Response Response;
typedef struct Output Output;
typedef struct Instance Instance;

enum { IN_HOST_MEMORY = 0, LAST_RESPONSE = 1, RELEASE_ALL = 1 };

Error *TRITONBACKEND_RequestInputByIndex(Request *, uint32_t index, Input **);
Error *TRITONBACKEND_InputProperties(Input *, const char **name, int32_t *type, const int64_t **shape, uint32_t *rank,
                                     uint64_t *size_bytes, uint32_t *buffers);
Error *TRITONBACKEND_InputBuffer(Input *, uint32_t index, const void **, uint64_t *size_bytes, int32_t *memory, int64_t *memory_id);
Error *TRITONBACKEND_ResponseNew(Response **, Request *);
Error *TRITONBACKEND_ResponseOutput(Response *, Output **, const char *name, int32_t type, const int64_t *shape, uint32_t rank);
Error *TRITONBACKEND_OutputBuffer(Output *, void **, uint64_t size_bytes, int32_t *memory, int64_t *memory_id);
Error *TRITONBACKEND_ResponseSend(Response *, uint32_t flags, Error *);
Error *TRITONBACKEND_RequestRelease(Request *, uint32_t flags);

static Error *answer(Request *request)
{
    Input *input;
    const char *name;
    int32_t type;
    const int64_t *shape;
    uint32_t rank, buffers;
    uint64_t size_bytes;
    Error *error = TRITONBACKEND_RequestInputByIndex(request, 0, &input);
    if (!error)
        error = TRITONBACKEND_InputProperties(input, &name, &type, &shape, &rank, &size_bytes, &buffers);
    Response *response;
    if (!error)
        error = TRITONBACKEND_ResponseNew(&response, request);
    if (error)
        return error;
    Output *output;
    char *to;
    int32_t memory = IN_HOST_MEMORY;
    int64_t memory_id = 0;
    error = TRITONBACKEND_ResponseOutput(response, &output, "output", type, shape, rank);
    if (!error)
        error = TRITONBACKEND_OutputBuffer(output, (void **)&to, size_bytes, &memory, &memory_id);
    for (uint32_t buffer = 0; !error && buffer < buffers; ++buffer) {
        const void *from;
        uint64_t part_bytes;
        error = TRITONBACKEND_InputBuffer(input, buffer, &from, &part_bytes, &memory, &memory_id);
        if (!error) {
            memcpy(to, from, part_bytes);
            to += part_bytes;
        }
    }
    return TRITONBACKEND_ResponseSend(response, LAST_RESPONSE, error);
}

Error *TRITONBACKEND_ModelInstanceExecute(Instance *instance, Request **requests, uint32_t count)
{
    Error *error = 0;
    for (uint32_t index = 0; !error && index < count; ++index)
        error = answer(requests[index]);
    if (error)
        return error;
    for (uint32_t index = 0; index < count; ++index)
        TRITONBACKEND_RequestRelease(requests[index], RELEASE_ALL);
    return 0;
}
