// Functions of another file: a trace reads those that record something.
exports.helper = (x) => {
  if (x.sum().gt(0).item()) return x.neg(); // ✗
  return x;
};

exports.kind = (x) => (typeof x === "object" ? 1 : 2);

exports.pure = (x) => x.neg();
