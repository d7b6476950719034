import { spawnSync } from 'node:child_process';

/** Debian's Python, whose packages include pandas, matplotlib and paho. Another one may come first in the PATH. */
export const debianPython = '/usr/bin/python3';

const find =
  'import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, sys.argv[1:])))';
const has = (...modules: string[]) =>
  spawnSync(debianPython, ['-c', find, ...modules]).status === 0;

export const hasPandas = has('pandas', 'matplotlib');
export const hasPaho = has('paho');
