import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Files that take eight seconds or more: if one starts late, the run waits for it at the end. If Vitest has not run
 * before, as in CI, it knows only the files' sizes.
 */
const longest = [
  'test/faults/faults.test.ts',
  'test/console/account.test.ts',
  'test/console/device.test.ts',
  'test/backup/portable.test.ts',
  'test/console/fleet.test.ts',
  'test/console/alarms.test.ts',
  'test/alarms/service.test.ts',
  'test/console/security.test.ts',
  'test/process/stopping.test.ts',
  'test/journeys/alarms/silence.test.ts',
  'test/streams/measurements.test.ts',
  'test/cli/account.test.ts',
  'test/process/start.test.ts',
  'test/upgrades/upgrade.test.ts',
  'test/http/conformity.test.ts',
  'test/imports/formats.test.ts',
  'test/notifications/outbox.test.ts',
  'test/measurements/export.test.ts',
  'test/connector/kept.test.ts',
  'test/connector/v5.test.ts',
  'test/journeys/held-back.test.ts',
  'test/db/lock-tables.test.ts',
  'test/process/health.test.ts',
  'test/backup/backup.test.ts',
  'test/backup/portable-refused.test.ts',
  'test/cluster/disable-bridge.test.ts',
  'test/cluster/bridge-status.test.ts',
  'test/console/walk.test.ts',
  'test/journeys/simulate.test.ts',
  'test/db/embedded-hand-over.test.ts',
  'test/db/embedded.test.ts',
  'test/db/plans.test.ts',
  'test/connector/bridge/broker-errors.test.ts',
  'test/quotas/stored.test.ts',
  'test/history/upkeep.test.ts',
  'test/engine/properties.test.ts',
  'test/ingest/fairness.test.ts',
  'test/quotas/profiles.test.ts',
  'test/journeys/catching-up.test.ts',
  'test/streams/presence.test.ts',
  'test/jobs/runner.test.ts',

  // Files of the long part that take twenty seconds or more.
  'test/upgrades/killed.long.test.ts',
  'test/secret-check/processes.long.test.ts',
  'test/memory/profiles.long.test.ts',
  'test/cluster/processes.long.test.ts',
  'test/faults/faults.long.test.ts',
  'test/engine/in-time.long.test.ts',
  'test/backup/portable-rows.long.test.ts',
  'test/console/every-page.long.test.ts',
  'test/console/account.long.test.ts',
  'test/console/device.long.test.ts',
  'test/console/fleet.long.test.ts',
  'test/console/chart.long.test.ts',
  'test/http/fuzz.long.test.ts',
  'test/journeys/sms-abuse.long.test.ts',
  'test/imports/disturbed.long.test.ts',
  'test/cluster/disable.long.test.ts',
  'test/examples/devices.long.test.ts',
  'test/cluster/time.long.test.ts',
  'test/secret-check/embedded.long.test.ts',
  'test/upgrades/upgrade.long.test.ts',
  'test/memory/names.long.test.ts',
  'test/connector/bridge/passing-on.long.test.ts',
  'test/backup/portable-refused.long.test.ts',
  'test/db/embedded-hand-over.long.test.ts',
  'test/process/wrong-database.long.test.ts',
  'test/cluster/haproxy-devices.long.test.ts',
  'test/imports/held.long.test.ts',
  'test/backup/portable.long.test.ts',
  'test/cluster/killed-making.long.test.ts',
  'test/process/wrong-redis.long.test.ts',
  'test/process/unfit-database.long.test.ts',
  'test/clients/swagger.long.test.ts',
  'test/cluster/bridge-passing-on.long.test.ts',
  'test/cluster/killed-jobs.long.test.ts',
  'test/process/install/fresh.long.test.ts',
  'test/clients/typescript.long.test.ts',
];

/** The long files of each project first, the others as Vitest sorts them. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { root } = this.ctx.config;
    const gone = longest.filter((file) => !existsSync(join(root, file)));
    if (gone.length > 0)
      throw new Error(`No such test file: ${gone.join(', ')} (longest-first.ts).`);
    const rankOf = ({ moduleId }: TestSpecification) => {
      const index = longest.indexOf(relative(root, moduleId));
      return index === -1 ? longest.length : index;
    };
    // Project by project, as Vitest has them. Files of the same rank stay in Vitest's order.
    const projects = Map.groupBy(await super.sort(files), ({ project }) => project.name);
    return [...projects.values()].flatMap((each) => each.toSorted((a, b) => rankOf(a) - rankOf(b)));
  }
}
