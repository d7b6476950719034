// JavaScript, because it runs before there is a Node that can run TypeScript.
import { readFileSync } from 'node:fs';

/**
 * The optional dependency with Node for a platform; undefined if there is none.
 *
 * @param {string} projectDir
 * @param {{ platform: string; arch: string }} of as in `process`
 * @returns {string | undefined}
 */
export function findNodePackage(projectDir, { platform, arch }) {
  /** @type {{ optionalDependencies: Record<string, string> }} */
  const manifest = JSON.parse(readFileSync(`${projectDir}/package.json`, 'utf8'));
  const suffix = `-${platform === 'win32' ? 'win' : platform}-${arch}`;
  return Object.keys(manifest.optionalDependencies).find((name) => name.endsWith(suffix));
}
