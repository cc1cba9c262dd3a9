// The parameters of a kernel that is a function, as the host gives them: one structure, in which they follow each other. What a
// `HostValue` of each type is, is said where kernels are called.

template <typename T> struct Plain {
    typedef T Type;
};
template <typename T> struct Plain<const T> {
    typedef T Type;
};
template <typename T> struct Plain<T &> {
    typedef typename Plain<T>::Type Type;
};

template <typename... P> struct HostValues;
template <typename Last> struct HostValues<Last> {
    HostValue<typename Plain<Last>::Type> first;
};
template <typename First, typename Second, typename... Rest> struct HostValues<First, Second, Rest...> {
    HostValue<typename Plain<First>::Type> first;
    HostValues<Second, Rest...> rest;
};

template <typename Kernel> struct HostParameters;
template <typename... P> struct HostParameters<void(P...)> : HostValues<P...> {};

// Calls a kernel, which is the function `call` of a structure, with the values that an entry has.
template <typename Kernel, typename Last, typename... Found>
DEVICE void call_kernel(const HostValues<Last> &values, u32 entry, const Found &...found) {
    Kernel::call(found..., values.first.of(entry));
}
template <typename Kernel, typename First, typename Second, typename... Rest, typename... Found>
DEVICE void call_kernel(const HostValues<First, Second, Rest...> &values, u32 entry, const Found &...found) {
    call_kernel<Kernel>(values.rest, entry, found..., values.first.of(entry));
}
