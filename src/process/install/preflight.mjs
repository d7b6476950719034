// Runs before the program of an npm script (--import), also on a Node that is too old for all
// else here: hence JavaScript, and nothing but Node's own modules.
import { existsSync, readdirSync } from 'node:fs';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { findNodePackage } from './node-package.mjs';

/** The first major version that runs TypeScript files as they are and has all that is used here. */
const leastMajor = 24;

/**
 * What is wrong with this installation and which command mends it, in one line; null if nothing is.
 *
 * @param {{ projectDir: string; version: string; platform: string; arch: string }} facts
 *   `version`, `platform` and `arch` of the Node that is running, as `process` names them.
 * @returns {string | null}
 */
export function findProblem({ projectDir, version, platform, arch }) {
  const modules = `${projectDir}/node_modules`;
  if (!existsSync(`${modules}/pg`))
    return `The packages are not installed in ${modules}: run \`npm ci\`.`;
  // It has a package for each platform, all optional: where none is there, no optional one is.
  if (!list(`${modules}/@node-rs`).some((name) => name.startsWith('argon2-')))
    return `The optional packages are not installed in ${modules}, and they are needed: run \`npm ci --include=optional\`.`;

  const running = version.replace('v', '');
  if (Number.parseInt(running, 10) >= leastMajor) return null;
  const needed = `Node ${leastMajor} or later is needed, and this is Node ${running}.`;
  const name = findNodePackage(projectDir, { platform, arch });
  if (name === undefined)
    return `${needed} npm has none for ${platform}-${arch}: install it from https://nodejs.org.`;
  if (!existsSync(`${modules}/${name}`))
    return `${needed} The package ${name}, which holds it, is not installed: run \`npm ci\`.`;
  if (!existsSync(`${modules}/.bin/node`))
    return `${needed} It is installed, but not linked, because install scripts did not run: run \`npm rebuild --ignore-scripts=false\`.`;
  return `${needed} It is ${modules}/.bin/node: use \`npm start\`, \`npm run\` or \`npx node\`.`;
}

/** @param {string} dir */
function list(dir) {
  return existsSync(dir) ? readdirSync(dir) : [];
}

const problem = findProblem({
  projectDir: fileURLToPath(new URL('../../..', import.meta.url)).replace(/[/\\]$/, ''),
  version: process.version,
  platform: process.platform,
  arch: process.arch,
});
if (problem !== null) {
  process.stderr.write(`${problem}\n`);
  process.exit(1);
}
