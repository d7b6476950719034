import type { InstalledDatabase } from './database.ts';

const marker = 'held at ';

/**
 * Stops each step of a migration after its work and before its commit, when its row is written. The session's name
 * says where it is held. The program's role may not be the superuser, so the function runs with its owner's rights.
 */
const holdEveryStep = `
  create schema hold;
  create table hold.passed (step text primary key);
  create function hold.at(name text) returns void language plpgsql security definer as $$
  begin
    if not exists (select from hold.passed where step = name) then
      perform set_config('application_name', '${marker}' || name, false);
      perform pg_sleep(3600);
    end if;
  end $$;
  create function hold.row() returns trigger language plpgsql security definer as $$
  begin
    perform hold.at(new.name);
    return new;
  end $$;
  create trigger hold before insert on public.migration
    for each row execute function hold.row();`;

const letAllPass = `
  drop trigger hold on public.migration;
  drop schema hold cascade;`;

export async function holdSteps({ runAlone }: InstalledDatabase): Promise<void> {
  await runAlone((client) => client.query(holdEveryStep));
}

export async function releaseSteps({ run }: InstalledDatabase): Promise<void> {
  await run((client) => client.query(letAllPass));
}

/** The step at which a program is held now; null for none. */
export async function findHeld({ run }: InstalledDatabase): Promise<string | null> {
  const { rows } = await run((client) =>
    client.query<{ step: string }>(
      `select substr(application_name, $1) as step from pg_stat_activity
        where datname = current_database() and starts_with(application_name, $2)`,
      [marker.length + 1, marker],
    ),
  );
  return rows[0]?.step ?? null;
}

/**
 * Ends the held session, as the end of its program or of the machine would, and lets the step pass the next time. The
 * server would notice a client's end only when it next writes to it.
 */
export async function cutOff({ run }: InstalledDatabase, step: string): Promise<void> {
  await run(async (client) => {
    await client.query(
      `select pg_terminate_backend(pid, 10000) from pg_stat_activity
        where datname = current_database() and application_name = $1`,
      [marker + step],
    );
    await client.query('insert into hold.passed values ($1)', [step]);
  });
}
