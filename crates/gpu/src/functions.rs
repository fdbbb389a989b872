//! Functions that modules call: those of float32 by the polynomials of the CPU's kernels (Cephes, and N. Juffa's error function), since WGSL
//! promises few digits of its own; integers of 64 bits as two words; and roundings to narrower floats.

/// The functions by name. A module holds those that it calls.
pub(crate) const FUNCTIONS: &[(&str, &str)] = &[
    // WGSL has no literal for what is not finite, and refuses constants that would be that.
    ("number", "fn number(bits: u32) -> f32 {\n    return bitcast<f32>(bits);\n}\n"),
    // The bits of a float16 as those of a float32. Below the normal numbers, a float16 is a multiple of 2^-24.
    (
        "half_bits",
        "fn half_bits(word: u32) -> u32 {
    let size = word & 0x7fffu;
    let small = bitcast<u32>(f32(size) * 5.9604644775390625e-8f);
    let large = (size << 13u) + select(0x38000000u, 0x70000000u, size >= 0x7c00u);
    return ((word & 0x8000u) << 16u) | select(small, large, size >= 0x400u);
}
",
    ),
    ("is_nan", "fn is_nan(x: f32) -> bool {\n    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;\n}\n"),
    ("is_inf", "fn is_inf(x: f32) -> bool {\n    return (bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u;\n}\n"),
    (
        "with_sign",
        "fn with_sign(size: f32, sign: f32) -> f32 {
    return bitcast<f32>((bitcast<u32>(size) & 0x7fffffffu) | (bitcast<u32>(sign) & 0x80000000u));
}
",
    ),
    // What is not a number goes through both.
    ("larger", "fn larger(a: f32, b: f32) -> f32 {\n    return select(b, a, a > b || is_nan(a));\n}\n"),
    ("smaller", "fn smaller(a: f32, b: f32) -> f32 {\n    return select(b, a, a < b || is_nan(a));\n}\n"),
    // `e^x` is one more than the first number, times two to the power of the second.
    (
        "exp_parts",
        "fn exp_parts(x: f32) -> vec2<f32> {
    let it = max(x, -104.0f);
    let n = round(it * 1.442695f);
    let rest = (it - n * 0.693359375f) + n * 2.1219444e-4f;
    var y = 1.3814613e-3f;
    y = y * rest + 8.3687101e-3f;
    y = y * rest + 4.1668389e-2f;
    y = y * rest + 1.6666521e-1f;
    y = y * rest + 4.9999994e-1f;
    y = y * rest + 1.0f;
    return vec2<f32>(y * rest, n);
}
",
    ),
    (
        "exp_of",
        "fn exp_of(x: f32) -> f32 {
    if (is_nan(x)) { return x; }
    if (x > 89.0f) { return number(0x7f800000u); }
    let it = exp_parts(x);
    return scaled(it.x + 1.0f, i32(it.y));
}
",
    ),
    // One power of two alone has not the range.
    (
        "scaled",
        "fn scaled(x: f32, n: i32) -> f32 {
    let half = n >> 1u;
    return x * bitcast<f32>(u32(half + 127) << 23u) * bitcast<f32>(u32(n - half + 127) << 23u);
}
",
    ),
    (
        "exp2_of",
        "fn exp2_of(x: f32) -> f32 {
    if (is_nan(x)) { return x; }
    if (x >= 128.0f) { return number(0x7f800000u); }
    let it = max(x, -150.0f);
    let n = round(it);
    return scaled(exp_of((it - n) * 0.6931472f), i32(n));
}
",
    ),
    (
        "expm1_of",
        "fn expm1_of(x: f32) -> f32 {
    if (x == 0.0f || is_nan(x)) { return x; }
    if (x > 80.0f) { return exp_of(x); }
    let it = exp_parts(x);
    let scale = scaled(1.0f, i32(it.y));
    return it.x * scale + (scale - 1.0f);
}
",
    ),
    (
        "ln_of",
        "fn ln_of(x: f32) -> f32 {
    if (is_nan(x) || x < 0.0f) { return number(0x7fc00000u); }
    if (x == 0.0f) { return number(0xff800000u); }
    if (is_inf(x)) { return x; }
    let is_small = x < 1.1754944e-38f;
    let bits = bitcast<u32>(select(x, x * 8388608.0f, is_small));
    let exponent = bitcast<i32>(bits - 0x3f3504f3u) >> 23u;
    let f = bitcast<f32>(bits - (u32(exponent) << 23u)) - 1.0f;
    let e = f32(exponent) - select(0.0f, 23.0f, is_small);
    var y = 7.0376836e-2f;
    y = y * f - 1.151461e-1f;
    y = y * f + 1.167699e-1f;
    y = y * f - 1.2420141e-1f;
    y = y * f + 1.4249323e-1f;
    y = y * f - 1.6668057e-1f;
    y = y * f + 2.0000715e-1f;
    y = y * f - 2.4999994e-1f;
    y = y * f + 3.3333331e-1f;
    let square = f * f;
    y = y * f * square - e * 2.1219444e-4f - 0.5f * square;
    return f + y + e * 0.693359375f;
}
",
    ),
    (
        "ln1p_of",
        "fn ln1p_of(x: f32) -> f32 {
    let sum = 1.0f + x;
    if (sum == 1.0f) { return x; }
    if (x == -1.0f || is_inf(x)) { return ln_of(sum); }
    return ln_of(sum) - ((sum - 1.0f) - x) / sum;
}
",
    ),
    (
        "pow_of",
        "fn pow_of(x: f32, y: f32) -> f32 {
    if (y == 0.0f || x == 1.0f) { return 1.0f; }
    if (is_nan(x) || is_nan(y)) { return number(0x7fc00000u); }
    let size = abs(x);
    if (is_inf(y)) {
        if (size == 1.0f) { return 1.0f; }
        return select(0.0f, number(0x7f800000u), (size > 1.0f) == (y > 0.0f));
    }
    let is_whole = trunc(y) == y;
    let is_odd = is_whole && abs(y) < 16777216.0f && (u32(abs(y)) & 1u) == 1u;
    let sign = select(1.0f, x, is_odd);
    if (size == 0.0f) { return with_sign(select(number(0x7f800000u), 0.0f, y > 0.0f), sign); }
    if (x < 0.0f && !is_whole && !is_inf(x)) { return number(0x7fc00000u); }
    // The exponent times the whole digits of the power is exact, so that large results have as many digits as small ones.
    let is_small = size < 1.1754944e-38f;
    let bits = bitcast<u32>(select(size, size * 8388608.0f, is_small));
    if (bits >= 0x7f800000u) { return with_sign(select(0.0f, size, y > 0.0f), sign); }
    let whole = bitcast<i32>(bits - 0x3f3504f3u) >> 23u;
    let fraction = bitcast<f32>(bits - (u32(whole) << 23u));
    let e = f32(whole) - select(0.0f, 23.0f, is_small);
    let upper = bitcast<f32>(bitcast<u32>(y) & 0xfffff000u);
    let high = upper * e;
    let low = (y - upper) * e + y * (ln_of(fraction) * 1.442695f);
    if (high + low >= 128.0f) { return with_sign(number(0x7f800000u), sign); }
    if (high + low < -150.0f) { return with_sign(0.0f, sign); }
    let n = round(high + low);
    return with_sign(scaled(exp_of(((high - n) + low) * 0.6931472f), i32(n)), sign);
}
",
    ),
    (
        "sqrt_of",
        "fn sqrt_of(x: f32) -> f32 {
    if (x < 0.0f || is_nan(x)) { return number(0x7fc00000u); }
    if (x == 0.0f || is_inf(x)) { return x; }
    return sqrt(x);
}
",
    ),
    (
        "sin_cos",
        "fn sin_cos(x: f32, quarter: u32) -> f32 {
    if (is_nan(x) || is_inf(x)) { return number(0x7fc00000u); }
    var r = 0.0f;
    var turns = quarter;
    if (abs(x) < 4096.0f) {
        let n = round(x * 0.63661975f);
        r = ((x - n * 1.5703125f) - n * 4.837513e-4f) - n * 7.54979e-8f;
        turns += u32(i32(n));
    } else {
        let left = quarter_turns(x);
        r = bitcast<f32>(left.x);
        turns += left.y;
    }
    let z = r * r;
    let sine = ((-1.9515296e-4f * z + 8.332161e-3f) * z - 1.6666655e-1f) * z * r + r;
    let cosine = ((2.4433157e-5f * z - 1.3887316e-3f) * z + 4.1666646e-2f) * z * z - 0.5f * z + 1.0f;
    let value = select(sine, cosine, (turns & 1u) == 1u);
    return select(value, -value, (turns & 2u) == 2u);
}
",
    ),
    // What is left of a large angle after as many quarters of a turn as there are in it, and their number: the product with those digits of 2/pi that
    // count (Payne and Hanek, as N. Juffa has it).
    (
        "quarter_turns",
        "fn quarter_turns(x: f32) -> vec2<u32> {
    var digits = array<u32, 8>(0u, 0x28be60dbu, 0x9391054au, 0x7f09d5f4u, 0x7d4d3770u, 0x36d8a566u, 0x4f10e410u, 0x7f9458eau);
    let bits = bitcast<u32>(x);
    let mantissa = vec2<u32>((bits << 8u) | 0x80000000u, 0u);
    let exponent = ((bits >> 23u) & 0xffu) - 126u;
    let at = min(exponent >> 5u, 4u);
    let shift = exponent & 31u;
    var high = digits[at];
    var middle = digits[at + 1u];
    var low = digits[at + 2u];
    if (shift != 0u) {
        high = (high << shift) | (middle >> (32u - shift));
        middle = (middle << shift) | (low >> (32u - shift));
        low = (low << shift) | (digits[at + 3u] >> (32u - shift));
    }
    var product = vec2<u32>(long_multiply(mantissa, vec2<u32>(low, 0u)).y, 0u);
    product = long_add(long_multiply(mantissa, vec2<u32>(middle, 0u)), product);
    product.y += mantissa.x * high;
    var turns = product.y >> 30u;
    product.y &= 0x3fffffffu;
    if ((product.y & 0x20000000u) != 0u) {
        product.y -= 0x40000000u;
        turns += 1u;
    }
    let r = long_to_float(product) * 2.1684043e-19f * 1.5707964f;
    if (x < 0.0f) { return vec2<u32>(bitcast<u32>(-r), 0u - turns); }
    return vec2<u32>(bitcast<u32>(r), turns);
}
",
    ),
    (
        "hypot_of",
        "fn hypot_of(a: f32, b: f32) -> f32 {
    if (is_inf(a) || is_inf(b)) { return number(0x7f800000u); }
    if (is_nan(a) || is_nan(b)) { return number(0x7fc00000u); }
    let size = max(abs(a), abs(b));
    if (size == 0.0f) { return 0.0f; }
    let rest = min(abs(a), abs(b)) / size;
    return size * sqrt(1.0f + rest * rest);
}
",
    ),
    (
        "atan_of",
        "fn atan_of(x: f32) -> f32 {
    let size = abs(x);
    var it = size;
    var start = 0.0f;
    if (size > 2.4142137f) {
        start = 1.5707964f;
        it = -1.0f / size;
    } else if (size > 0.41421357f) {
        start = 0.7853982f;
        it = (size - 1.0f) / (size + 1.0f);
    }
    let z = it * it;
    let y = (((8.0537444e-2f * z - 1.3877686e-1f) * z + 1.9977711e-1f) * z - 3.333295e-1f) * z * it + it;
    return with_sign(start + y, x);
}
",
    ),
    (
        "atan2_of",
        "fn atan2_of(y: f32, x: f32) -> f32 {
    if (is_nan(x) || is_nan(y)) { return number(0x7fc00000u); }
    let is_left = (bitcast<u32>(x) & 0x80000000u) != 0u;
    let straight = select(0.0f, 3.1415927f, is_left);
    if (y == 0.0f) { return with_sign(straight, y); }
    if (x == 0.0f) { return with_sign(1.5707964f, y); }
    if (is_inf(x) && is_inf(y)) { return with_sign(select(0.7853982f, 2.3561945f, is_left), y); }
    if (is_inf(x)) { return with_sign(straight, y); }
    if (is_inf(y)) { return with_sign(1.5707964f, y); }
    let angle = atan_of(abs(y) / abs(x));
    return with_sign(select(angle, 3.1415927f - angle, is_left), y);
}
",
    ),
    (
        "asin_of",
        "fn asin_of(x: f32) -> f32 {
    let size = abs(x);
    if (size > 1.0f || is_nan(x)) { return number(0x7fc00000u); }
    let is_large = size > 0.5f;
    let z = select(size * size, 0.5f * (1.0f - size), is_large);
    let s = select(size, sqrt(z), is_large);
    var y = 4.21632e-2f;
    y = y * z + 2.418131e-2f;
    y = y * z + 4.5470025e-2f;
    y = y * z + 7.4953005e-2f;
    y = y * z + 1.6666752e-1f;
    y = y * z * s + s;
    return with_sign(select(y, 1.5707964f - 2.0f * y, is_large), x);
}
",
    ),
    (
        "acos_of",
        "fn acos_of(x: f32) -> f32 {
    if (abs(x) > 1.0f || is_nan(x)) { return number(0x7fc00000u); }
    if (x > 0.5f) { return 2.0f * asin_of(sqrt(0.5f * (1.0f - x))); }
    if (x < -0.5f) { return 3.1415927f - 2.0f * asin_of(sqrt(0.5f * (1.0f + x))); }
    return 1.5707964f - asin_of(x);
}
",
    ),
    (
        "sinh_of",
        "fn sinh_of(x: f32) -> f32 {
    let size = abs(x);
    if (size < 1.0f) {
        let z = x * x;
        return ((2.0372191e-4f * z + 8.330284e-3f) * z + 1.6666716e-1f) * z * x + x;
    }
    let e = exp_of(0.5f * size);
    return with_sign(0.5f * e * e - 0.5f / (e * e), x);
}
",
    ),
    (
        "cosh_of",
        "fn cosh_of(x: f32) -> f32 {
    let e = exp_of(0.5f * abs(x));
    return 0.5f * e * e + 0.5f / (e * e);
}
",
    ),
    (
        "tanh_of",
        "fn tanh_of(x: f32) -> f32 {
    let size = abs(x);
    let z = x * x;
    if (size < 0.625f) {
        var y = -5.704989e-3f;
        y = y * z + 2.0639088e-2f;
        y = y * z - 5.3739715e-2f;
        y = y * z + 1.3331442e-1f;
        y = y * z - 3.3333281e-1f;
        return y * z * x + x;
    }
    if (is_nan(x)) { return x; }
    return with_sign(1.0f - 2.0f / (exp_of(min(size + size, 40.0f)) + 1.0f), x);
}
",
    ),
    (
        "asinh_of",
        "fn asinh_of(x: f32) -> f32 {
    let a = abs(x);
    if (a > 1e9f) { return with_sign(ln_of(a) + 0.6931472f, x); }
    return with_sign(ln1p_of(a + a * a / (1.0f + sqrt(a * a + 1.0f))), x);
}
",
    ),
    (
        "acosh_of",
        "fn acosh_of(x: f32) -> f32 {
    if (x < 1.0f || is_nan(x)) { return number(0x7fc00000u); }
    if (x > 1e9f) { return ln_of(x) + 0.6931472f; }
    let t = x - 1.0f;
    return ln1p_of(t + sqrt(2.0f * t + t * t));
}
",
    ),
    (
        "atanh_of",
        "fn atanh_of(x: f32) -> f32 {
    let a = abs(x);
    if (a > 1.0f || is_nan(x)) { return number(0x7fc00000u); }
    if (a == 1.0f) { return with_sign(number(0x7f800000u), x); }
    return with_sign(0.5f * ln1p_of(2.0f * a / (1.0f - a)), x);
}
",
    ),
    (
        "erf_of",
        "fn erf_of(x: f32) -> f32 {
    if (is_nan(x)) { return x; }
    let size = abs(x);
    if (size > 0.92773438f) {
        let t = min(size, 10.0f);
        var y = -1.7285347e-5f;
        y = y * t + 3.8319713e-4f;
        y = y * t - 3.8839644e-3f;
        y = y * t + 2.4254622e-2f;
        y = y * t - 1.0677788e-1f;
        y = y * t - 6.3484669e-1f;
        y = y * t - 1.2871751e-1f;
        return with_sign(1.0f - exp_of(y * t - t), x);
    }
    let z = x * x;
    var y = -5.967617e-4f;
    y = y * z + 4.991194e-3f;
    y = y * z - 2.6768135e-2f;
    y = y * z + 1.1281993e-1f;
    y = y * z - 3.7612534e-1f;
    y = y * z + 1.2837917e-1f;
    return y * x + x;
}
",
    ),
    // Two equal infinities have no difference.
    (
        "log_add_of",
        "fn log_add_of(a: f32, b: f32) -> f32 {
    let most = larger(a, b);
    return select(most + ln1p_of(exp_of(smaller(a, b) - most)), most, is_inf(most));
}
",
    ),
    ("sigmoid_of", "fn sigmoid_of(x: f32) -> f32 {\n    return 1.0f / (1.0f + exp_of(-x));\n}\n"),
    (
        "softplus_of",
        "fn softplus_of(x: f32) -> f32 {
    if (is_nan(x)) { return x; }
    return max(x, 0.0f) + ln1p_of(exp_of(-abs(x)));
}
",
    ),
    ("gelu_of", "fn gelu_of(x: f32) -> f32 {\n    return 0.5f * x * (1.0f + erf_of(x * 0.70710677f));\n}\n"),
    (
        "gelu_tanh_of",
        "fn gelu_tanh_of(x: f32) -> f32 {
    return 0.5f * x * (1.0f + tanh_of(0.7978846f * (x + 0.044715f * x * x * x)));
}
",
    ),
    (
        "clamped",
        "fn clamped(x: f32, low: f32, high: f32) -> f32 {\n    return smaller(larger(x, low), high);\n}\n",
    ),
    (
        "by_zero",
        "fn by_zero(x: f32) -> f32 {
    if (x == 0.0f || is_nan(x)) { return number(0x7fc00000u); }
    return with_sign(number(0x7f800000u), x);
}
",
    ),
    (
        "fmod_of",
        "fn fmod_of(a: f32, b: f32) -> f32 {
    let size = abs(b);
    if (size == 0.0f || is_nan(a) || is_nan(b) || is_inf(a)) { return number(0x7fc00000u); }
    if (is_inf(b) || abs(a) < size) { return a; }
    // Differences of numbers so near are exact.
    var rest = abs(a);
    let steps = min(i32(bitcast<u32>(rest) >> 23u) - i32(bitcast<u32>(size) >> 23u), 252);
    for (var n = steps; n >= 0; n--) {
        let multiple = scaled(size, n);
        if (rest >= multiple) { rest -= multiple; }
    }
    return with_sign(rest, a);
}
",
    ),
    (
        "remainder_of",
        "fn remainder_of(a: f32, b: f32) -> f32 {
    let rest = fmod_of(a, b);
    return select(rest, rest + b, rest != 0.0f && (b < 0.0f) != (rest < 0.0f));
}
",
    ),
    (
        "floor_divided",
        "fn floor_divided(a: f32, b: f32) -> f32 {
    if (b == 0.0f) { return a / b; }
    let rest = fmod_of(a, b);
    var quotient = (a - rest) / b;
    if (rest != 0.0f && (b < 0.0f) != (rest < 0.0f)) { quotient -= 1.0f; }
    if (quotient == 0.0f) { return with_sign(0.0f, a / b); }
    let whole = floor(quotient);
    return select(whole, whole + 1.0f, quotient - whole > 0.5f);
}
",
    ),
    // Halves go to the even neighbour.
    (
        "half_of",
        "fn half_of(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    let sign = bits & 0x80000000u;
    let size = bits & 0x7fffffffu;
    if (size >= 0x7f800000u) { return x; }
    if (size >= 0x477ff000u) { return number(sign | 0x7f800000u); }
    if (size < 0x38800000u) { return with_sign(round(abs(x) * 16777216.0f) / 16777216.0f, x); }
    return bitcast<f32>(sign | ((size + 0xfffu + ((size >> 13u) & 1u)) & 0xffffe000u));
}
",
    ),
    (
        "brain_of",
        "fn brain_of(x: f32) -> f32 {
    if (is_nan(x)) { return x; }
    let bits = bitcast<u32>(x);
    return bitcast<f32>((bits + 0x7fffu + ((bits >> 16u) & 1u)) & 0xffff0000u);
}
",
    ),
    (
        "int_divided",
        "fn int_divided(a: i32, b: i32) -> i32 {
    let quotient = a / b;
    return select(quotient, quotient - 1i, a % b != 0i && (a < 0i) != (b < 0i));
}
",
    ),
    (
        "int_remainder",
        "fn int_remainder(a: i32, b: i32) -> i32 {
    let rest = a % b;
    return select(rest, rest + b, rest != 0i && (rest < 0i) != (b < 0i));
}
",
    ),
    (
        "long_add",
        "fn long_add(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let low = a.x + b.x;
    return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}
",
    ),
    ("long_negate", "fn long_negate(a: vec2<u32>) -> vec2<u32> {\n    return long_add(~a, vec2<u32>(1u, 0u));\n}\n"),
    (
        "long_subtract",
        "fn long_subtract(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}
",
    ),
    (
        "long_multiply",
        "fn long_multiply(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let a0 = a.x & 0xffffu;
    let a1 = a.x >> 16u;
    let b0 = b.x & 0xffffu;
    let b1 = b.x >> 16u;
    let low = a0 * b0;
    let middle = a1 * b0 + (low >> 16u);
    let other = a0 * b1 + (middle & 0xffffu);
    let high = a1 * b1 + (middle >> 16u) + (other >> 16u);
    return vec2<u32>(a.x * b.x, high + a.x * b.y + a.y * b.x);
}
",
    ),
    (
        "long_less",
        "fn long_less(a: vec2<u32>, b: vec2<u32>) -> bool {
    return bitcast<i32>(a.y) < bitcast<i32>(b.y) || (a.y == b.y && a.x < b.x);
}
",
    ),
    ("long_equal", "fn long_equal(a: vec2<u32>, b: vec2<u32>) -> bool {\n    return all(a == b);\n}\n"),
    ("long_is_negative", "fn long_is_negative(a: vec2<u32>) -> bool {\n    return bitcast<i32>(a.y) < 0i;\n}\n"),
    (
        "long_absolute",
        "fn long_absolute(a: vec2<u32>) -> vec2<u32> {\n    return select(a, long_negate(a), long_is_negative(a));\n}\n",
    ),
    ("long_larger", "fn long_larger(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {\n    return select(a, b, long_less(a, b));\n}\n"),
    ("long_smaller", "fn long_smaller(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {\n    return select(a, b, long_less(b, a));\n}\n"),
    (
        "long_left",
        "fn long_left(a: vec2<u32>, n: u32) -> vec2<u32> {
    if (n >= 64u) { return vec2<u32>(0u, 0u); }
    if (n >= 32u) { return vec2<u32>(0u, a.x << (n - 32u)); }
    if (n == 0u) { return a; }
    return vec2<u32>(a.x << n, (a.y << n) | (a.x >> (32u - n)));
}
",
    ),
    (
        "long_right",
        "fn long_right(a: vec2<u32>, n: u32) -> vec2<u32> {
    let sign = bitcast<u32>(bitcast<i32>(a.y) >> 31u);
    if (n >= 64u) { return vec2<u32>(sign, sign); }
    if (n >= 32u) { return vec2<u32>(bitcast<u32>(bitcast<i32>(a.y) >> (n - 32u)), sign); }
    if (n == 0u) { return a; }
    return vec2<u32>((a.x >> n) | (a.y << (32u - n)), bitcast<u32>(bitcast<i32>(a.y) >> n));
}
",
    ),
    // The quotient of sizes, one bit after the other; the divisor is not zero.
    (
        "long_quotient",
        "fn long_quotient(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    var quotient = vec2<u32>(0u, 0u);
    var rest = vec2<u32>(0u, 0u);
    for (var bit = 0u; bit < 64u; bit++) {
        let top = rest.y >> 31u;
        rest = vec2<u32>((rest.x << 1u) | ((select(a.x, a.y, bit < 32u) >> (31u - (bit & 31u))) & 1u), (rest.y << 1u) | (rest.x >> 31u));
        quotient = vec2<u32>(quotient.x << 1u, (quotient.y << 1u) | (quotient.x >> 31u));
        if (top == 1u || rest.y > b.y || (rest.y == b.y && rest.x >= b.x)) {
            rest = long_subtract(rest, b);
            quotient.x |= 1u;
        }
    }
    return quotient;
}
",
    ),
    (
        "long_divided",
        "fn long_divided(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let quotient = long_quotient(long_absolute(a), long_absolute(b));
    return select(quotient, long_negate(quotient), long_is_negative(a) != long_is_negative(b));
}
",
    ),
    (
        "long_floor_divided",
        "fn long_floor_divided(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let quotient = long_divided(a, b);
    let is_exact = long_equal(long_multiply(quotient, b), a);
    let is_above = !is_exact && long_is_negative(a) != long_is_negative(b);
    return select(quotient, long_subtract(quotient, vec2<u32>(1u, 0u)), is_above);
}
",
    ),
    (
        "long_fmod",
        "fn long_fmod(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {\n    return long_subtract(a, long_multiply(long_divided(a, b), b));\n}\n",
    ),
    (
        "long_remainder",
        "fn long_remainder(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {\n    return long_subtract(a, long_multiply(long_floor_divided(a, b), b));\n}\n",
    ),
    ("long_of_int", "fn long_of_int(a: i32) -> vec2<u32> {\n    return vec2<u32>(bitcast<u32>(a), bitcast<u32>(a >> 31u));\n}\n"),
    // The upper 32 digits, where those that are lost are one digit below what is rounded.
    (
        "long_to_float",
        "fn long_to_float(a: vec2<u32>) -> f32 {
    let size = long_absolute(a);
    var res = f32(size.x);
    if (size.y != 0u) {
        let shift = 32u - countLeadingZeros(size.y);
        let top = select((size.y << (32u - shift)) | (size.x >> shift), size.y, shift == 32u);
        let lost = select(size.x << (32u - shift), size.x, shift == 32u);
        res = f32(top | select(0u, 1u, lost != 0u)) * bitcast<f32>((127u + shift) << 23u);
    }
    return select(res, -res, long_is_negative(a));
}
",
    ),
    // What no integer of 64 bits is becomes the least one, as on the CPU.
    (
        "long_of_float",
        "fn long_of_float(x: f32) -> vec2<u32> {
    let size = abs(x);
    if (size < 2147483648.0f) { return long_of_int(i32(x)); }
    let bits = bitcast<u32>(size);
    let exponent = bits >> 23u;
    if (exponent >= 190u) { return vec2<u32>(0u, 0x80000000u); }
    let it = long_left(vec2<u32>((bits & 0x7fffffu) | 0x800000u, 0u), exponent - 150u);
    return select(it, long_negate(it), x < 0.0f);
}
",
    ),
];
