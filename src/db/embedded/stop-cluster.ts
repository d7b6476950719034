import { findPostmaster } from './postmaster.ts';
import { ProgramError, runProgram, type Programs } from './programs.ts';

/**
 * `fast` ends the sessions and writes everything out; `immediate` leaves that to the next start. Resolves
 * once no server runs on the cluster; rejects where one still does after the time.
 */
export async function stopCluster(
  programs: Programs,
  clusterDir: string,
  mode: 'fast' | 'immediate',
  timeoutSeconds: number,
): Promise<void> {
  const timeout = String(timeoutSeconds);
  const ask = () =>
    runProgram(programs, 'pg_ctl', [
      'stop', '--pgdata', clusterDir, '--mode', mode, '--wait', '--timeout', timeout, '--silent',
    ]); // prettier-ignore
  try {
    await ask().catch((error: unknown) => {
      // A Ctrl-C reached it before it had a session of its own.
      if (error instanceof ProgramError && error.signal !== null) return ask();
      throw error;
    });
  } catch (error) {
    // pg_ctl fails too where the server ended before it was asked to, or just after the time-out.
    if ((await findPostmaster(clusterDir)) !== null) throw error;
  }
}
