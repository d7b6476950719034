import { chownSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectionStringOf } from '../../src/db/embedded/cluster.ts';
import { startEmbeddedDatabase } from '../../src/db/embedded/embedded.ts';
import { newHome, startAt, type Home, type Started } from '../backup/home.ts';
import { findAddress, superuserUrl } from '../support/embedded.ts';
import { runOn } from '../support/template.ts';
import { runProgram } from '../journeys/process.ts';
import { listNotOwned } from './not-owned.ts';

const role = 'sensorium_service';
let home: Home;
let dataDir: string;
let service: Started;

beforeAll(async () => {
  home = await newHome('embedded', null);
  dataDir = home.variables['DATA_DIR'] ?? '';
  service = await startAt(home);
});
afterAll(async () => {
  await service.close();
  await home.remove();
});

const asSuperuser = async <T extends object>(text: string): Promise<T[]> =>
  runOn(await superuserUrl(dataDir), async (client) => (await client.query<T>(text)).rows);

describe('the service on the embedded database', () => {
  it('works as a role with rights only on what it owns', async () => {
    const [found] = await asSuperuser(
      `select rolcanlogin, rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls,
              (select count(*)::int from pg_auth_members where member = pg_roles.oid) as memberships
         from pg_roles where rolname = '${role}'`,
    );
    expect(found).toEqual({
      rolcanlogin: true,
      rolsuper: false,
      rolcreatedb: false,
      rolcreaterole: false,
      rolreplication: false,
      rolbypassrls: false,
      memberships: 0,
    });
  });

  it('has no session of another role', async () => {
    const listSessions = () =>
      asSuperuser(
        `select usename, bool_or(datname = 'postgres') as watches, bool_or(datname = 'sensorium') as works
           from pg_stat_activity
          where backend_type = 'client backend' and pid <> pg_backend_pid()
          group by usename`,
      );
    // The server removes a session a moment after its client has ended it.
    await expect.poll(listSessions).toEqual([{ usename: role, watches: true, works: true }]);
  });

  it('owns each of its objects, and those of its jobs', async () => {
    expect(await runOn(await superuserUrl(dataDir), listNotOwned)).toEqual([]);
  });

  it('has a password that only its owner can read, and npm run account logs in with it', async () => {
    const password = readFileSync(join(dataDir, 'service-password'), 'utf8').trim();
    expect(password).not.toBe(readFileSync(join(dataDir, 'database-password'), 'utf8').trim());
    const address = await findAddress(dataDir);
    if (address === null) throw new Error('It does not run.');
    const guessed = connectionStringOf(address, { role, password: 'guessed' }, 'sensorium');
    await expect(runOn(guessed, async () => undefined)).rejects.toThrow('password');
    const env = { DATA_DIR: dataDir };
    const list = runProgram(process.execPath, ['src/cli/account.ts', 'list'], { env });
    expect([await list.ended(), list.stderr()]).toEqual([0, '']);
  });

  it('is not locked out when another one is started beside it after its password was lost', async () => {
    const file = join(dataDir, 'service-password');
    const password = readFileSync(file, 'utf8');
    rmSync(file);
    const log = { info: () => undefined, warn: () => undefined };
    await expect(startEmbeddedDatabase({ dataDir, log })).rejects.toThrow('is using it');
    writeFileSync(file, password, { mode: 0o600 });
    const address = await findAddress(dataDir);
    if (address === null) throw new Error('It does not run.');
    const own = connectionStringOf(address, { role, password: password.trim() }, 'sensorium');
    await runOn(own, (client) => client.query('select from public.migration'));
  });

  it("starts again without the superuser's password", async () => {
    await service.close();
    const file = join(dataDir, 'database-password');
    renameSync(file, `${file}.away`);
    service = await startAt(home);
    await service.close();
    renameSync(`${file}.away`, file);
    // And if its own is lost, with that one.
    const own = join(dataDir, 'service-password');
    rmSync(own);
    const { uid, gid } = statSync(file);
    // Root gives the new file to the owner of the other one.
    const isRoot = process.getuid?.() === 0;
    if (isRoot) chownSync(file, 12_345, 12_346);
    service = await startAt(home);
    expect(statSync(own).mode & 0o777).toBe(0o600);
    expect(statSync(own)).toMatchObject(isRoot ? { uid: 12_345, gid: 12_346 } : { uid, gid });
    if (isRoot) for (const each of [file, own]) chownSync(each, uid, gid);
  });
});
