import type { PoolClient, Query } from 'pg';

/** Sends a statement that writes itself to the connection; resolves when the server has done it. */
export function submit(client: PoolClient, query: Query): Promise<void> {
  return new Promise((resolve, reject) => {
    const callback = (error: Error | null) => (error ? reject(error) : resolve());
    client.query(Object.assign(query, { callback }));
  });
}
