import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { TestProject } from 'vitest/node';
import { findTimescaleBinDir, startThrowAwayCluster, type Cluster } from './cluster.ts';
import { hasChromium } from './chromium.ts';
import { findProgram } from './program.ts';
import { hasPandas } from './python.ts';
import { sweepAbandoned } from './sweep.ts';
import { createTemplate, runOn, type Template } from './template.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    templates: Template[];
  }
}

const runFile = promisify(execFile);

/** Starts one server of each kind for the whole run. The last line names what the machine lacks. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  await sweepAbandoned();
  // Services that tests start expect the console to be built.
  await runFile(process.execPath, ['src/console/build/main.ts']);
  const clusters: Cluster[] = [];
  const external = process.env['TEST_DATABASE_URL'] ?? null;
  const templates: Template[] = [];
  const isPush = project.config.env['TEST_PART'] === 'push';
  const teardown = async () => {
    if (external !== null) await dropTemplates(templates, external);
    await Promise.all(clusters.map((cluster) => cluster.remove()));
  };
  try {
    const [plainUrl, timescaleUrl] = await Promise.all([
      startCluster(clusters, false),
      isPush
        ? null
        : (external ?? (findTimescaleBinDir() === null ? null : startCluster(clusters, true))),
    ]);
    const making = [createTemplate(plainUrl, 'postgresql')];
    if (timescaleUrl !== null) making.push(createTemplate(timescaleUrl, 'timescaledb'));
    templates.push(...(await Promise.all(making)));
  } catch (error) {
    await teardown();
    throw error;
  }
  project.provide('templates', templates);
  return async () => {
    await teardown();
    const missing = listMissing(templates, isPush);
    if (missing.length > 0) console.log(`Not run here, missing: ${missing.join(', ')}.`);
  };
}

async function startCluster(clusters: Cluster[], timescaledb: boolean): Promise<string> {
  const cluster = await startThrowAwayCluster({ timescaledb });
  clusters.push(cluster);
  return cluster.url();
}

function listMissing(templates: Template[], isPush: boolean): string[] {
  const servers = ['redis-server', 'mosquitto', 'haproxy'];
  const tools = ['mosquitto_pub', 'curl', 'openssl', 'docker-compose', 'chromium'];
  const missing = [...servers, ...tools].filter((program) => findProgram(program) === null);
  if (isPush) missing.push('TimescaleDB (left out of this part)');
  else if (!templates.some(({ kind }) => kind === 'timescaledb'))
    missing.push(
      'TimescaleDB (neither TEST_DATABASE_URL nor the PostgreSQL of this machine has it)',
    );
  if (!hasChromium) missing.push('chromium');
  if (!hasPandas) missing.push('python3-pandas and python3-matplotlib');
  if (process.getuid?.() !== 0) missing.push('root (how the embedded database runs as root)');
  return missing;
}

async function dropTemplates(templates: Template[], url: string): Promise<void> {
  await runOn(url, async (admin) => {
    for (const template of templates)
      if (template.adminUrl === url)
        await admin.query(`drop database if exists ${template.name} with (force)`);
  });
}
