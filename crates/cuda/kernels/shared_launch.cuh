// One launch for problems of several kernels. The host puts this after `parameters.cuh`; then each kernel's template in a namespace
// of its own, with its parameters defined before it and undefined after it; and then the kernel that is launched, which calls the
// one that each block belongs to (`compiler/shared_program.rs`).

// A parameter as the host gives it.
template <typename T> struct alignas(16) alignas(T) HostValue {
    T value;
    DEVICE const T &of(u32) const { return value; }
};
