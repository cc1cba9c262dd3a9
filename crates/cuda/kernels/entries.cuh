// One launch for several requests: every block computes its part of one entry, with the parameters that the kernel has for
// that entry. The host puts this after a kernel's template and `parameters.cuh`, and defines ENTRY_BLOCKS (see the prelude),
// ENTRY_KERNEL (the kernel's name) and ENTRY_THREADS (of a block).

// A parameter as the host gives it: the same for all entries, or an address, or the first of the entries' fault words.
template <typename T> struct alignas(16) HostValue {
    T value;
    DEVICE const T &of(u32) const { return value; }
};
template <typename T> struct HostValue<T *> : At<T> {};
template <> struct alignas(16) HostValue<Fault> {
    Fault value;
    DEVICE Fault of(u32 entry) const { return {value.word + entry, value.number}; }
};

struct EntryKernel {
    template <typename... P> static DEVICE void call(const P &...parameters) { ENTRY_KERNEL(parameters...); }
};

// Entries past `count` are empty.
extern "C" __global__ void __launch_bounds__(ENTRY_THREADS)
    entries(const __grid_constant__ HostParameters<decltype(ENTRY_KERNEL)> parameters, const u64 *count) {
    if (ENTRY >= __ldg(count)) return;
    call_kernel<EntryKernel>(parameters, ENTRY);
}
