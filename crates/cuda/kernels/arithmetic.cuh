// Arithmetic as the operators mean it: integers wrap and never trap, not-a-number comes through minima and maxima.

template <typename T> struct UnsignedOf { typedef T type; };
template <> struct UnsignedOf<signed char> { typedef unsigned char type; };
template <> struct UnsignedOf<int> { typedef unsigned int type; };
template <> struct UnsignedOf<long long> { typedef unsigned long long type; };

template <typename T> DEVICE T sum(T a, T b) {
    typedef typename UnsignedOf<T>::type U;
    return T(U(a) + U(b));
}

template <typename T> DEVICE T difference(T a, T b) {
    typedef typename UnsignedOf<T>::type U;
    return T(U(a) - U(b));
}

template <typename T> DEVICE T product(T a, T b) {
    typedef typename UnsignedOf<T>::type U;
    return T(U(a) * U(b));
}

template <typename T> DEVICE bool is_minus_one(T x) { return T(-1) < T(0) && x == T(-1); }

// Truncates; what is divided by zero is zero.
template <typename T> DEVICE T quotient(T a, T b) {
    if (b == T(0)) return T(0);
    return is_minus_one(b) ? difference(T(0), a) : T(a / b);
}

// With the dividend's sign; zero for a division by zero.
template <typename T> DEVICE T remainder_of(T a, T b) {
    return b == T(0) || is_minus_one(b) ? T(0) : T(a % b);
}

// With the divisor's sign.
template <typename T> DEVICE T modulo_of(T a, T b) {
    T remainder = remainder_of(a, b);
    return remainder != T(0) && (remainder < T(0)) != (b < T(0)) ? sum(remainder, b) : remainder;
}

DEVICE float modulo_of(float a, float b) {
    float remainder = fmodf(a, b);
    return remainder != 0.f && (remainder < 0.f) != (b < 0.f) ? remainder + b : remainder;
}

template <typename T> DEVICE T power_of(T base, long long exponent) {
    if (exponent < 0) {
        // A reciprocal truncates to zero, save of one and minus one.
        base = quotient(T(1), base);
        exponent &= 1;
        if (base == T(0)) return base;
    }
    T power = T(1);
    for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1) power = product(power, base);
        base = product(base, base);
    }
    return power;
}

// A shift by the width and more leaves nothing.
template <typename T> DEVICE T shifted_left(T a, T by) {
    typedef typename UnsignedOf<T>::type U;
    return by < T(0) || U(by) >= U(sizeof(T) * 8) ? T(0) : T(U(a) << by);
}

template <typename T> DEVICE T shifted_right(T a, T by) {
    typedef typename UnsignedOf<T>::type U;
    return by < T(0) || U(by) >= U(sizeof(T) * 8) ? T(0) : T(a >> by);
}

template <typename T> DEVICE T least(T a, T b) { return a < b || a != a ? a : b; }
template <typename T> DEVICE T greatest(T a, T b) { return a > b || a != a ? a : b; }

template <typename T> DEVICE T magnitude_of(T x) { return x < T(0) ? difference(T(0), x) : x; }
template <typename T> DEVICE T sign_of(T x) { return x > T(0) ? T(1) : (x < T(0) ? T(-1) : x); }
