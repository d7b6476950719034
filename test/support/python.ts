import { spawnSync } from 'node:child_process';

/** Debian's, whose packages have pandas and matplotlib; another one may be first in the PATH. */
export const debianPython = '/usr/bin/python3';

const find = `
import importlib.util, sys
sys.exit(not all(map(importlib.util.find_spec, ["pandas", "matplotlib"])))
`;

export const hasPandas = spawnSync(debianPython, ['-c', find]).status === 0;
