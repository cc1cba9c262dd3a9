// Division by a number that the host knows, without dividing; for numerators below 2^31.

struct Divider {
    u32 divisor, multiplier, shift;
};

DEVICE u32 divided(u32 numerator, Divider by) { return (__umulhi(numerator, by.multiplier) + numerator) >> by.shift; }

// Takes the remainder off the index and returns it; the index is left divided.
DEVICE u32 take_remainder(u32 &index, Divider by) {
    u32 quotient = divided(index, by);
    u32 remainder = index - quotient * by.divisor;
    index = quotient;
    return remainder;
}
