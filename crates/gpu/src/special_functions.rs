//! Functions that modules call, of those beyond the elementary ones: error functions, gamma functions, those of Bessel, powers and divisors
//! of integers, shifts by what the data tells, and the next float.

/// The functions by name, as [`crate::functions::FUNCTIONS`].
pub(crate) const FUNCTIONS: &[(&str, &str)] = &[
    // N. Juffa's error function, of which the outer range is the complement itself.
    (
        "erfc_of",
        "fn erfc_of(x: f32) -> f32 {
    if (is_nan(x) || abs(x) <= 0.92773438f) { return 1.0f - erf_of(x); }
    let t = min(abs(x), 10.0f);
    var y = -1.7285347e-5f;
    y = y * t + 3.8319713e-4f;
    y = y * t - 3.8839644e-3f;
    y = y * t + 2.4254622e-2f;
    y = y * t - 1.0677788e-1f;
    y = y * t - 6.3484669e-1f;
    y = y * t - 1.2871751e-1f;
    let tail = exp_of(y * t - t);
    return select(tail, 2.0f - tail, x < 0.0f);
}
",
    ),
    // M. Giles, Approximating the erfinv function, GPU Computing Gems 2 (2010).
    (
        "erfinv_of",
        "fn erfinv_of(x: f32) -> f32 {
    let size = abs(x);
    if (is_nan(x) || size > 1.0f) { return number(0x7fc00000u); }
    if (size == 1.0f) { return with_sign(number(0x7f800000u), x); }
    var w = -ln_of((1.0f - size) * (1.0f + size));
    var y = 0.0f;
    if (w < 5.0f) {
        w = w - 2.5f;
        y = 2.81022636e-8f;
        y = y * w + 3.43273939e-7f;
        y = y * w - 3.5233877e-6f;
        y = y * w - 4.39150654e-6f;
        y = y * w + 2.1858087e-4f;
        y = y * w - 1.25372503e-3f;
        y = y * w - 4.17768164e-3f;
        y = y * w + 2.46640727e-1f;
        y = y * w + 1.50140941f;
    } else {
        w = sqrt(w) - 3.0f;
        y = -2.00214257e-4f;
        y = y * w + 1.00950558e-4f;
        y = y * w + 1.34934322e-3f;
        y = y * w - 3.67342844e-3f;
        y = y * w + 5.73950773e-3f;
        y = y * w - 7.6224613e-3f;
        y = y * w + 9.43887047e-3f;
        y = y * w + 1.00167406f;
        y = y * w + 2.83297682f;
    }
    return y * x;
}
",
    ),
    // The part of a number behind its whole number, between minus a half and a half.
    ("beside_whole", "fn beside_whole(x: f32) -> f32 {\n    return x - round(x);\n}\n"),
    // Stirling's series beyond eight, and below it what the recurrence leads there (Abramowitz and Stegun, 6.1.41 and 6.1.15).
    // That of `2 + z`, with `z` at most a half away from zero (6.1.33): where it is zero itself, it has all its digits.
    (
        "lgamma_beside_two",
        "fn lgamma_beside_two(z: f32) -> f32 {
    var y = 4.3748668e-06f;
    y = y * z - 9.4394883e-06f;
    y = y * z + 2.0507213e-05f;
    y = y * z - 4.4926237e-05f;
    y = y * z + 9.9457513e-05f;
    y = y * z - 2.2315476e-04f;
    y = y * z + 5.0966952e-04f;
    y = y * z - 1.1927539e-03f;
    y = y * z + 2.8905103e-03f;
    y = y * z - 7.3855510e-03f;
    y = y * z + 2.0580808e-02f;
    y = y * z - 6.7352301e-02f;
    y = y * z + 3.2246703e-01f;
    y = y * z + 4.2278434e-01f;
    return y * z;
}
",
    ),
    (
        "lgamma_right",
        "fn lgamma_right(x: f32) -> f32 {
    if (x < 1e-10f) { return -ln_of(x); }
    if (x >= 1.5f && x <= 2.5f) { return lgamma_beside_two(x - 2.0f); }
    if (x >= 0.5f && x < 1.5f) { return lgamma_beside_two(x - 1.0f) - ln1p_of(x - 1.0f); }
    if (x > 1e8f) { return x * (ln_of(x) - 1.0f); }
    var z = x;
    var product = 1.0f;
    for (var n = 0u; n < 8u; n++) {
        if (z >= 8.0f) { break; }
        product *= z;
        z += 1.0f;
    }
    let inverse = 1.0f / z;
    let square = inverse * inverse;
    let series = inverse * (8.3333336e-2f + square * (-2.7777778e-3f + square * 7.9365081e-4f));
    return (z - 0.5f) * ln_of(z) - z + 0.9189385f + series - ln_of(product);
}
",
    ),
    (
        "lgamma_of",
        "fn lgamma_of(x: f32) -> f32 {
    if (is_nan(x)) { return x; }
    if (is_inf(x) || (x <= 0.0f && floor(x) == x)) { return number(0x7f800000u); }
    if (x > 0.0f) { return lgamma_right(x); }
    let sine = abs(sin_cos(3.1415927f * beside_whole(x), 0u));
    return 1.1447299f - ln_of(sine) - lgamma_right(1.0f - x);
}
",
    ),
    // Reflection to the right half, recurrence to beyond eight, and the asymptotic series there (Abramowitz and Stegun, 6.3.7, 6.3.5 and 6.3.18).
    (
        "digamma_right",
        "fn digamma_right(x: f32) -> f32 {
    var z = x;
    var below = 0.0f;
    for (var n = 0u; n < 8u; n++) {
        if (z >= 8.0f) { break; }
        below += 1.0f / z;
        z += 1.0f;
    }
    let inverse = 1.0f / z;
    let square = inverse * inverse;
    let series = square * (8.3333336e-2f + square * (-8.3333338e-3f + square * (3.968254e-3f - square * 4.1666669e-3f)));
    return ln_of(z) - 0.5f * inverse - series - below;
}
",
    ),
    (
        "digamma_of",
        "fn digamma_of(x: f32) -> f32 {
    if (is_nan(x)) { return x; }
    if (x == 0.0f) { return with_sign(number(0x7f800000u), -x); }
    if (x > 0.0f) { return digamma_right(x); }
    if (trunc(x) == x) { return number(0x7fc00000u); }
    let angle = 3.1415927f * beside_whole(x);
    return digamma_right(1.0f - x) - 3.1415927f * sin_cos(angle, 1u) / sin_cos(angle, 0u);
}
",
    ),
    // The modified functions of the first kind, of order zero and one, times `exp(-abs(x))`: Abramowitz and Stegun, 9.8.1 to 9.8.4.
    (
        "bessel_i0e",
        "fn bessel_i0e(x: f32) -> f32 {
    let size = abs(x);
    if (is_nan(x)) { return x; }
    if (size < 3.75f) {
        let t = (size / 3.75f) * (size / 3.75f);
        let y = 1.0f + t * (3.5156229f + t * (3.0899424f + t * (1.2067492f + t * (0.2659732f + t * (3.60768e-2f + t * 4.5813e-3f)))));
        return y * exp_of(-size);
    }
    let t = 3.75f / size;
    var y = 3.92377e-3f;
    y = y * t - 1.647633e-2f;
    y = y * t + 2.635537e-2f;
    y = y * t - 2.057706e-2f;
    y = y * t + 9.16281e-3f;
    y = y * t - 1.57565e-3f;
    y = y * t + 2.25319e-3f;
    y = y * t + 1.328592e-2f;
    y = y * t + 0.39894228f;
    return y / sqrt(size);
}
",
    ),
    (
        "bessel_i1e",
        "fn bessel_i1e(x: f32) -> f32 {
    let size = abs(x);
    if (is_nan(x)) { return x; }
    if (size < 3.75f) {
        let t = (size / 3.75f) * (size / 3.75f);
        let y = 0.5f + t * (0.87890594f + t * (0.51498869f + t * (0.15084934f + t * (2.658733e-2f + t * (3.01532e-3f + t * 3.2411e-4f)))));
        return y * x * exp_of(-size);
    }
    let t = 3.75f / size;
    var y = -4.20059e-3f;
    y = y * t + 1.787654e-2f;
    y = y * t - 2.895312e-2f;
    y = y * t + 2.282967e-2f;
    y = y * t - 1.031555e-2f;
    y = y * t + 1.63801e-3f;
    y = y * t - 3.62018e-3f;
    y = y * t - 3.988024e-2f;
    y = y * t + 0.39894228f;
    return with_sign(y / sqrt(size), x);
}
",
    ),
    // In two steps, for the exponential may overflow where the product does not. Of what is infinite, the kernels multiply zero and infinity.
    (
        "with_exponential",
        "fn with_exponential(x: f32, size: f32) -> f32 {
    if (is_inf(size)) { return number(0x7fc00000u); }
    let half = exp_of(0.5f * size);
    return x * half * half;
}
",
    ),
    // As nextafterf of the C library: one more or less in the bits, which are in the order of the magnitudes.
    (
        "next_after",
        "fn next_after(a: f32, b: f32) -> f32 {
    if (is_nan(a) || is_nan(b)) { return number(0x7fc00000u); }
    let x = bitcast<u32>(a);
    let y = bitcast<u32>(b);
    let x_size = x & 0x7fffffffu;
    let y_size = y & 0x7fffffffu;
    if (x == y || (x_size == 0u && y_size == 0u)) { return b; }
    if (x_size == 0u) { return bitcast<f32>((y & 0x80000000u) | 1u); }
    return bitcast<f32>(select(x + 1u, x - 1u, x_size > y_size || ((x ^ y) & 0x80000000u) != 0u));
}
",
    ),
    (
        "is_close",
        "fn is_close(a: f32, b: f32, rtol: f32, atol: f32, equal_nan: bool) -> bool {
    if (is_nan(a) || is_nan(b)) { return equal_nan && is_nan(a) && is_nan(b); }
    if (a == b) { return true; }
    let distance = a - b;
    if (is_nan(distance) || is_inf(distance)) { return false; }
    return abs(distance) <= atol + abs(rtol * b);
}
",
    ),
    // Shifts by as many places as the dtype has bits, or by fewer than none, move all bits out.
    (
        "int_left",
        "fn int_left(a: i32, n: i32, bits: i32) -> i32 {
    if (n < 0i || n >= bits) { return 0i; }
    return a << u32(n);
}
",
    ),
    (
        "int_right",
        "fn int_right(a: i32, n: i32, bits: i32) -> i32 {
    if (n < 0i || n >= bits) { return a >> 31u; }
    return a >> u32(n);
}
",
    ),
    // Squares and multiplies. A negative power is the integer part of the fraction.
    (
        "int_power",
        "fn int_power(a: i32, n: i32) -> i32 {
    if (n < 0i) {
        if (a == 1i) { return 1i; }
        if (a == -1i) { return select(-1i, 1i, (n & 1i) == 0i); }
        return 0i;
    }
    var base = a;
    var product = 1i;
    for (var bit = 0u; bit < 31u; bit++) {
        if (((n >> bit) & 1i) == 1i) { product *= base; }
        base *= base;
    }
    return product;
}
",
    ),
    (
        "long_power",
        "fn long_power(a: vec2<u32>, n: vec2<u32>) -> vec2<u32> {
    let one = vec2<u32>(1u, 0u);
    if (long_is_negative(n)) {
        if (all(a == one)) { return one; }
        if (all(a == vec2<u32>(0xffffffffu, 0xffffffffu))) { return select(a, one, (n.x & 1u) == 0u); }
        return vec2<u32>(0u, 0u);
    }
    var base = a;
    var rest = n;
    var product = one;
    for (var bit = 0u; bit < 63u; bit++) {
        if (all(rest == vec2<u32>(0u, 0u))) { break; }
        if ((rest.x & 1u) == 1u) { product = long_multiply(product, base); }
        base = long_multiply(base, base);
        rest = long_right(rest, 1u);
    }
    return product;
}
",
    ),
    // Euclid's algorithm, which no pair of these keeps busy for longer (Lamé).
    (
        "int_gcd",
        "fn int_gcd(a: i32, b: i32) -> i32 {
    var x = a;
    var y = b;
    for (var n = 0u; n < 48u; n++) {
        if (x == 0i) { break; }
        let rest = y % x;
        y = x;
        x = rest;
    }
    return y;
}
",
    ),
    (
        "long_gcd",
        "fn long_gcd(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    var x = a;
    var y = b;
    for (var n = 0u; n < 96u; n++) {
        if (all(x == vec2<u32>(0u, 0u))) { break; }
        let rest = long_fmod(y, x);
        y = x;
        x = rest;
    }
    return y;
}
",
    ),
    // The low bits of the absolute value of the whole product, which is no absolute value of the low bits.
    (
        "int_lcm",
        "fn int_lcm(a: i32, b: i32) -> i32 {
    let divisor = int_gcd(a, b);
    if (divisor == 0i) { return 0i; }
    let quotient = a / divisor;
    let product = quotient * b;
    return select(product, -product, (quotient < 0i) != (b < 0i));
}
",
    ),
    (
        "long_lcm",
        "fn long_lcm(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let divisor = long_gcd(a, b);
    if (all(divisor == vec2<u32>(0u, 0u))) { return divisor; }
    return long_absolute(long_multiply(long_divided(a, divisor), b));
}
",
    ),
];
