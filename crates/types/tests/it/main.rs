//! The gradual types against what torch.fx and Z3 recorded (tests/oracle/gen_types.py).

mod case;
mod check;
mod constraints;
mod limits;
mod validator;
