// One launch for several requests: every block computes its part of one entry, with the parameters that the kernel has for
// that entry. The host puts this after a kernel's template, and defines ENTRY_BLOCKS (see the prelude), ENTRY_KERNEL (the
// kernel's name) and ENTRY_THREADS (of a block).

// A parameter as the host gives it: the same for all entries, or an address, or the first of the entries' fault words.
template <typename T> struct alignas(16) EntryValue {
    T value;
    DEVICE const T &of(u32) const { return value; }
};
template <typename T> struct EntryValue<T *> : At<T> {};
template <> struct alignas(16) EntryValue<Fault> {
    Fault value;
    DEVICE Fault of(u32 entry) const { return {value.word + entry, value.number}; }
};

template <typename T> struct Plain {
    typedef T Type;
};
template <typename T> struct Plain<const T> {
    typedef T Type;
};
template <typename T> struct Plain<T &> {
    typedef typename Plain<T>::Type Type;
};

// All parameters, one after the other, each at a multiple of 16 bytes.
template <typename... P> struct EntryValues;
template <typename Last> struct EntryValues<Last> {
    EntryValue<typename Plain<Last>::Type> first;
};
template <typename First, typename Second, typename... Rest> struct EntryValues<First, Second, Rest...> {
    EntryValue<typename Plain<First>::Type> first;
    EntryValues<Second, Rest...> rest;
};

template <typename Kernel> struct EntryParameters;
template <typename... P> struct EntryParameters<void(P...)> : EntryValues<P...> {};

template <typename Last, typename... Found>
DEVICE void compute_entry(const EntryValues<Last> &values, u32 entry, const Found &...found) {
    ENTRY_KERNEL(found..., values.first.of(entry));
}
template <typename First, typename Second, typename... Rest, typename... Found>
DEVICE void compute_entry(const EntryValues<First, Second, Rest...> &values, u32 entry, const Found &...found) {
    compute_entry(values.rest, entry, found..., values.first.of(entry));
}

// Entries past `count` are empty.
extern "C" __global__ void __launch_bounds__(ENTRY_THREADS)
    entries(const __grid_constant__ EntryParameters<decltype(ENTRY_KERNEL)> parameters, const u64 *count) {
    if (ENTRY >= __ldg(count)) return;
    compute_entry(parameters, ENTRY);
}
