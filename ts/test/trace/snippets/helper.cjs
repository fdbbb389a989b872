// Functions of another file, whose source a trace does not see.
exports.helper = (x) => {
  if (x.any()) return x.neg(); // ✗
  return x;
};

exports.pure = (x) => x.neg();
