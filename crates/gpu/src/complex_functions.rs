//! Functions that modules call, of complex numbers: the steps of the CPU's kernels, in float32.

/// The functions by name, as [`crate::functions::FUNCTIONS`].
pub(crate) const FUNCTIONS: &[(&str, &str)] = &[
    (
        "complex_product",
        "fn complex_product(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
    return vec2<f32>(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
",
    ),
    // Smith's method: no square overflows where the quotient does not.
    (
        "complex_quotient",
        "fn complex_quotient(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
    if (b.x == 0.0f && b.y == 0.0f) { return vec2<f32>(by_zero(a.x), by_zero(a.y)); }
    if (abs(b.x) >= abs(b.y)) {
        let ratio = b.y / b.x;
        let below = b.x + b.y * ratio;
        return vec2<f32>((a.x + a.y * ratio) / below, (a.y - a.x * ratio) / below);
    }
    let ratio = b.x / b.y;
    let below = b.x * ratio + b.y;
    return vec2<f32>((a.x * ratio + a.y) / below, (a.y * ratio - a.x) / below);
}
",
    ),
    // What is not a number is other than everything.
    (
        "complex_is_other",
        "fn complex_is_other(a: vec2<f32>, b: vec2<f32>) -> bool {
    if (is_nan(a.x) || is_nan(a.y) || is_nan(b.x) || is_nan(b.y)) { return true; }
    return a.x != b.x || a.y != b.y;
}
",
    ),
    // In two steps, for the exponential may overflow where the product does not.
    (
        "complex_exp",
        "fn complex_exp(a: vec2<f32>) -> vec2<f32> {
    if (a.y == 0.0f) { return vec2<f32>(exp_of(a.x), a.y); }
    if (is_inf(a.x) && (is_nan(a.y) || is_inf(a.y))) {
        if (a.x > 0.0f) { return vec2<f32>(a.x, number(0x7fc00000u)); }
        return vec2<f32>(0.0f, with_sign(0.0f, a.y));
    }
    let half = exp_of(0.5f * a.x);
    return vec2<f32>(half * sin_cos(a.y, 1u) * half, half * sin_cos(a.y, 0u) * half);
}
",
    ),
    // Near one, the logarithm is that of the little beside it.
    (
        "complex_log",
        "fn complex_log(a: vec2<f32>) -> vec2<f32> {
    let large = max(abs(a.x), abs(a.y));
    let small = min(abs(a.x), abs(a.y));
    var size = 0.0f;
    if (is_nan(a.x) || is_nan(a.y)) {
        size = hypot_of(a.x, a.y);
    } else if (large >= 0.5f && large < 2.0f) {
        size = 0.5f * ln1p_of((large - 1.0f) * (large + 1.0f) + small * small);
    } else if (large > 1e37f && !is_inf(large)) {
        size = ln_of(hypot_of(a.x * 0.25f, a.y * 0.25f)) + 1.3862944f;
    } else {
        size = ln_of(hypot_of(a.x, a.y));
    }
    return vec2<f32>(size, atan2_of(a.y, a.x));
}
",
    ),
    // The root whose real part is not negative. Powers of four keep what is computed away from the ends.
    (
        "complex_sqrt",
        "fn complex_sqrt(a: vec2<f32>) -> vec2<f32> {
    if (is_inf(a.y)) { return vec2<f32>(number(0x7f800000u), a.y); }
    if (is_inf(a.x)) {
        let other = select(0.0f, a.y, is_nan(a.y));
        if (a.x > 0.0f) { return vec2<f32>(a.x, with_sign(other, a.y)); }
        return vec2<f32>(other, with_sign(number(0x7f800000u), a.y));
    }
    let large = max(abs(a.x), abs(a.y));
    var scale = 1.0f;
    var root = 1.0f;
    if (large > 1e37f) {
        scale = 0.0625f;
        root = 4.0f;
    } else if (large < 1e-30f) {
        scale = 1048576.0f;
        root = 9.765625e-4f;
    }
    let it = a * scale;
    let half = sqrt_of(0.5f * (hypot_of(it.x, it.y) + abs(it.x)));
    if (half == 0.0f) { return vec2<f32>(0.0f, a.y); }
    if (it.x >= 0.0f) { return vec2<f32>(half * root, it.y / (2.0f * half) * root); }
    return vec2<f32>(abs(it.y) / (2.0f * half) * root, with_sign(half, it.y) * root);
}
",
    ),
];
