// Functions of another file, whose source a trace does not see.
exports.helper = (x) => {
  if (x.sum().gt(0).item()) return x.neg(); // ✗
  return x;
};

exports.pure = (x) => x.neg();
