#!/usr/bin/env node
// The command is linked before the package is built, so it needs a file that is always there.
import "../dist/cli/main.js";
