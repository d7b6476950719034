import { useEffect, useState } from 'preact/hooks';
import { ApiError } from '../api/request.ts';
import { formatNumber } from '../text/format.ts';
import { sayProblem } from '../text/said-by-service.ts';
import { t, tryText } from '../text/t.ts';
import { Icon } from './icon.tsx';

/** What went wrong, in words for people. */
export function describeProblem(error: unknown): string {
  if (!(error instanceof ApiError)) return t('problem.unreachable');
  const { code, message: text, exceeded, problems } = error;
  if (exceeded !== null) return describeExceeded(exceeded);
  const parts = problems.map(({ path, message }) => `${path} ${message}`.trim());
  return [sayProblem({ code, text }) || t('problem.title'), ...parts].join(' ');
}

function describeExceeded({ quota, limit, used }: NonNullable<ApiError['exceeded']>): string {
  const of = { used: formatNumber(used), limit: formatNumber(limit) };
  return t('problem.exceeded', { ...of, what: tryText(`quota.${quota}`, quota) });
}

/** Seconds until it may be tried again; counts down to 0. */
export function useRetryAfter(error: unknown): number {
  const after = error instanceof ApiError ? (error.retryAfterSeconds ?? 0) : 0;
  const [left, setLeft] = useState(after);
  useEffect(() => {
    setLeft(after);
    if (after <= 0) return undefined;
    const timer = setInterval(() => setLeft((before) => Math.max(0, before - 1)), 1_000);
    return () => clearInterval(timer);
  }, [error]);
  return left;
}

/** An error where it belongs: in the panel that failed. */
export function Problem({ error, retry }: { error: unknown; retry?: () => void }) {
  const left = useRetryAfter(error);
  if (error === undefined || error === null) return null;
  const id = error instanceof ApiError ? error.requestId : '';
  return (
    <div class="problem" role="alert">
      <Icon name="warn" />
      <div class="problem-text">
        <p>{describeProblem(error)}</p>
        {id !== '' && <p class="fine">{t('problem.request', { id })}</p>}
        {left > 0 && <p class="fine">{t('problem.wait', { seconds: left })}</p>}
      </div>
      {retry && (
        <button type="button" class="button" disabled={left > 0} onClick={retry}>
          {t('common.retry')}
        </button>
      )}
    </div>
  );
}
