import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { findProgram } from '../support/program.ts';
import { startFlags } from '../support/start-command.ts';

const program = findProgram('docker-compose');

async function readCompose(file: string, environment: Record<string, string>): Promise<string> {
  const { stdout } = await promisify(execFile)(program ?? '', ['--file', file, 'config'], {
    env: { PATH: process.env['PATH'], HOME: '/tmp', ...environment },
  });
  return stdout;
}

const files = ['docker-compose.yml', 'docker-compose.cluster.yml'];

describe.skipIf(program === null).each(files)('%s', (file) => {
  it('is valid, and gives the service its secret and database', async () => {
    const text = await readCompose(file, { SECRET: 'made-here', DATABASE_PASSWORD: 'made-too' });
    expect(text).toContain('SECRET: made-here');
    expect(text).toContain('postgresql://sensorium:made-too@database:5432/sensorium');
    expect(text).toContain('condition: service_healthy');
  });

  it('limits the memory and the log of every container, and the service writes nowhere', async () => {
    const text = await readCompose(file, { SECRET: 'x', DATABASE_PASSWORD: 'y' });
    const count = (pattern: RegExp) => text.match(pattern)?.length ?? 0;
    const containers = count(/^    restart: /gm);
    expect(containers).toBeGreaterThan(2);
    expect(count(/^    mem_limit: /gm)).toBe(containers);
    expect(count(/^        max-size: /gm)).toBe(containers);
    expect(count(/^    read_only: true/gm)).toBe(count(/^    build:/gm));
  });

  it.each(['SECRET', 'DATABASE_PASSWORD'])('has no default for %s', async (name) => {
    const given = { SECRET: 'x', DATABASE_PASSWORD: 'y', [name]: '' };
    await expect(readCompose(file, given)).rejects.toThrow('openssl rand');
  });
});

it('the image runs node as npm start does', () => {
  const image = readFileSync(new URL('../../Dockerfile', import.meta.url), 'utf8');
  expect(/NODE_OPTIONS=(.*)$/m.exec(image)?.[1]).toBe(startFlags().join(' '));
});
