// Least writer: 0.2.0
import pg from 'pg';
import type { MigrationBuilder } from 'node-pg-migrate';

type Row = { id: string; email: string };

/** Accounts by the normal form of their address, and what a refresh token that is used twice gives. */
export async function up(pgm: MigrationBuilder): Promise<void> {
  // SQL lowers ASCII as JavaScript does, so only the others are read. None of them is new: a program
  // that may still be writing takes ASCII alone.
  const { rows } = (await pgm.db.query(
    `select id, email from account where octet_length(email) > length(email)`,
  )) as { rows: Row[] };
  const beyondAscii = rows.map(({ id, email }) => ({
    id: Number(id),
    normal: email.toLowerCase(),
  }));

  // Null for a row that something else than the program wrote: nobody logs in there.
  pgm.sql('alter table account add column email_normal text');
  pgm.sql('update account set email_normal = lower(email collate "C")');
  pgm.sql(`
    update account set email_normal = given.normal
    from json_to_recordset(${pg.escapeLiteral(JSON.stringify(beyondAscii))})
      as given (id bigint, normal text)
    where account.id = given.id
  `);
  // Two that the database's locale told apart: one keeps the normal form, the others are found by
  // exactly what they are.
  pgm.sql(`
    update account set email_normal = account.email
    from (
      select id, row_number() over (
        partition by email_normal order by (email = email_normal) desc, id
      ) as place
      from account
    ) placed
    where placed.id = account.id and placed.place > 1
  `);
  pgm.sql('create unique index account_email_normal on account (email_normal)');
  pgm.sql('drop index account_email');

  pgm.sql(`
    alter table session
      -- SHA-256 of the refresh token before the current one
      add column previous_hash text,
      add column rotated_at timestamptz,
      -- the pair that followed, sealed under a key made of the token before it
      add column successor text
  `);
}
