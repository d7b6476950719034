// The install script of this project. npm 11 and later link the Node of the packages as node_modules/.bin/node. npm 10
// links it too, and then removes the link together with the packages of other platforms, whose links have the same
// name.
import { existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { findNodePackage } from './node-package.mjs';

const projectDir = fileURLToPath(new URL('../../..', import.meta.url));
const binDir = `${projectDir}node_modules/.bin`;
const name = findNodePackage(projectDir, process);

// On Windows npm writes three files instead of a link. There `npm rebuild` fixes it.
if (
  process.platform !== 'win32' &&
  existsSync(`${projectDir}node_modules/${name}/bin/node`) &&
  !existsSync(`${binDir}/node`)
) {
  mkdirSync(binDir, { recursive: true });
  // Removes a broken link.
  rmSync(`${binDir}/node`, { force: true });
  symlinkSync(`../${name}/bin/node`, `${binDir}/node`);
}
