// Numbers of one storage type as those of another, as Cast means it: integers that do not fit lose their high bits,
// floats that do not fit an integer saturate, not-a-number becomes zero, and whatever is not zero is true.

template <typename T> struct IsFloat { static constexpr bool value = false; };
template <> struct IsFloat<float> { static constexpr bool value = true; };
template <> struct IsFloat<__half> { static constexpr bool value = true; };
template <> struct IsFloat<__nv_bfloat16> { static constexpr bool value = true; };

template <typename A, typename B> struct IsSame { static constexpr bool value = false; };
template <typename A> struct IsSame<A, A> { static constexpr bool value = true; };

DEVICE float limited(float x, float least, float most) { return x < least ? least : (x > most ? most : x); }

template <typename Target> DEVICE Target integer_from(float x) {
    if (x != x) return Target(0);
    if constexpr (IsSame<Target, signed char>::value) return Target(int(limited(x, -128.f, 127.f)));
    else if constexpr (IsSame<Target, unsigned char>::value) return Target(int(limited(x, 0.f, 255.f)));
    else if constexpr (IsSame<Target, int>::value) return __float2int_rz(x);
    else return __float2ll_rz(x);
}

// Wide integers go to 16 bits in one rounding.
template <typename Target> DEVICE Target narrow_from(long long x) {
    if constexpr (IsSame<Target, __half>::value) return __double2half(double(x));
    else return __double2bfloat16(double(x));
}

template <typename Target, typename Source> DEVICE Target converted(Source x) {
    if constexpr (IsSame<Target, Source>::value) return x;
    else if constexpr (IsSame<Target, bool>::value) {
        if constexpr (IsFloat<Source>::value) return to_float(x) != 0.f;
        else return x != Source(0);
    } else if constexpr (IsFloat<Source>::value) {
        if constexpr (IsFloat<Target>::value) return from_float<Target>(to_float(x));
        else return integer_from<Target>(to_float(x));
    } else if constexpr (IsSame<Target, float>::value) return float(x);
    else if constexpr (IsFloat<Target>::value) return narrow_from<Target>((long long)x);
    else return Target(x);
}
