#!/usr/bin/env node
// The command is linked before the package is built, so it needs a file that is always there.
import { main } from "../dist/bundle/cli/main.js";

process.exitCode = await main(process.argv.slice(2));
