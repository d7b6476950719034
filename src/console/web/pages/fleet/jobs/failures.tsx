import { useQuery } from '../../../api/cache.ts';
import { getJob } from '../../../api/jobs.ts';
import { Link } from '../../../parts/link.tsx';
import { Answered } from '../../../parts/panel.tsx';
import { count, tryText } from '../../../text/t.ts';

const shown = 100;

/** Which devices failed, and why. */
export function Failures({ jobId, failures }: { jobId: string; failures: number }) {
  const query = useQuery(`job/${jobId}/${failures}`, (signal) => getJob(jobId, signal));
  return (
    <Answered query={query}>
      {({ failed }) => (
        <>
          <ul class="failures">
            {failed.slice(0, shown).map(({ deviceAuthUuid, reason }) => (
              <li key={deviceAuthUuid}>
                {reason === 'no-such-device' ? (
                  <code>{deviceAuthUuid}</code>
                ) : (
                  <Link to={`devices/${deviceAuthUuid}`}>{deviceAuthUuid}</Link>
                )}{' '}
                {tryText(`jobs.reason.${reason}`, reason)}
              </li>
            ))}
          </ul>
          {failures > shown && <p class="fine">{count('fleet.more', failures - shown)}</p>}
        </>
      )}
    </Answered>
  );
}
