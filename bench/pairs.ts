import { writeFile } from 'node:fs/promises';
import { startBenchDatabase, type BenchDatabase } from './database.ts';
import { commitOf, describeMachine } from './machine.ts';
import { alternate, type SideName } from './pairs/alternate.ts';
import { isMeant, readPairsOptions, type PairsOptions } from './pairs/options.ts';
import { summarize, toMarkdown, type WorkResult } from './pairs/report.ts';
import { works, type Work } from './pairs/works.ts';
import { createReleases, type Releases } from './releases.ts';
import { limitsFor, startBenchService } from './service.ts';

/**
 * Whether one version of the service is slower than another. Both run at the same time on one database server and are
 * loaded in turns, so that other work of the machine affects both. See docs/performance.md.
 */
await runPairs(readPairsOptions(works.map(({ name }) => name)));

async function runPairs(options: PairsOptions): Promise<void> {
  const releases = createReleases();
  try {
    const database = await startBenchDatabase(options.usedLogSegments);
    releases.defer(() => database.remove());
    const results: WorkResult[] = [];
    for (const work of works) {
      if (!isMeant(work.name, options.only)) continue;
      results.push(await compare(work, 'after', options, database, releases));
      if (options.self) results.push(await compare(work, 'before', options, database, releases));
    }
    const machine = {
      ...describeMachine(`${database.description}; ${database.settings.join(', ')}`),
      before: await describeTree(options.before),
      after: await describeTree(options.after),
    };
    console.log(toMarkdown(machine, options, results));
    if (options.jsonFile !== null)
      await writeFile(
        options.jsonFile,
        `${JSON.stringify({ machine, options, results }, null, 1)}\n`,
      );
  } finally {
    await releases.downTo(0);
  }
}

/** `against`: the tree that is compared with `before`. */
async function compare(
  work: Work,
  against: SideName,
  options: PairsOptions,
  database: BenchDatabase,
  releases: Releases,
): Promise<WorkResult> {
  console.log(`${work.name}, before against ${against}`);
  const depth = releases.depth();
  const open = async (side: SideName, tree: string) => {
    // The databases of finished works are dropped, so their names are free.
    const name = `pairs_${side}`;
    const databaseUrl = await database.createEmpty(name);
    releases.defer(() => database.drop(name));
    const service = await startBenchService({ databaseUrl, redisUrl: null, tree });
    releases.defer(() => service.stop());
    return work.open({
      service,
      databaseUrl,
      databasePid: database.pid,
      devices: options.devices,
      ...(options.v5 && side === 'after' ? { version: 5 as const } : {}),
      defer: releases.defer,
    });
  };
  const sides = {
    before: await open('before', options.before),
    after: await open('after', options[against]),
  };
  const pairs = await alternate(sides, options, (line) => console.log(line));
  await releases.downTo(depth);
  return summarize(work, against, pairs);
}

/** Directory, commit and raised limits of a tree. */
async function describeTree(dir: string): Promise<string> {
  return `${dir} at ${commitOf(dir)}; limits ${JSON.stringify(await limitsFor(dir))}`;
}
