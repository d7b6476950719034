import { cpSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { projectDir } from '../../journeys/process.ts';

/** The name of npm's package with Node for this machine, if it is Linux or macOS. */
export const nodePackage = `node-${process.platform === 'darwin' && process.arch === 'arm64' ? 'bin-' : ''}${process.platform}-${process.arch}`;

/** A directory that looks like the project, with only these files below node_modules. */
export function makeProject(files: string[]): string {
  const dir = mkdtempSync(join(tmpdir(), 'sensorium-install-'));
  for (const path of ['package.json', 'src/process/install'])
    cpSync(join(projectDir, path), join(dir, path), { recursive: true });
  for (const file of files) {
    const path = join(dir, 'node_modules', file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, '');
  }
  return dir;
}
