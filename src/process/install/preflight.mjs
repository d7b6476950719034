// Runs before the program of an npm script (--import), on a Node too old for everything else too. So it is JavaScript,
// and uses only Node's own modules.
import { existsSync, readdirSync } from 'node:fs';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { findNodePackage } from './node-package.mjs';

/** The first major version that runs TypeScript files directly and has everything that is used here. */
const leastMajor = 24;

/**
 * The problem with this installation, and the command that fixes it, in one line; null if there is none.
 *
 * @param {{ projectDir: string; version: string; platform: string; arch: string }} facts
 *   `version`, `platform` and `arch` of the running Node, as in `process`.
 * @returns {string | null}
 */
export function findProblem({ projectDir, version, platform, arch }) {
  const modules = `${projectDir}/node_modules`;
  if (!existsSync(`${modules}/pg`))
    return `The packages are not installed in ${modules}: run \`npm ci\`.`;
  // This package has one package per platform, all optional. If none is there, no optional package was installed.
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
