import { effect, signal } from '@preact/signals';
import type { ComponentChildren, ComponentType } from 'preact';
import { useEffect, useLayoutEffect, useState } from 'preact/hooks';
import type { Query } from '../api/cache.ts';
import { ApiError } from '../api/request.ts';
import { awaySince } from '../app/stream.ts';
import { formatNumber } from '../text/format.ts';
import { sayProblem } from '../text/said-by-service.ts';
import { t, tryText } from '../text/t.ts';
import { Icon, type IconName } from './icon.tsx';

/** The state of a query: its last answer, an error above it, or a skeleton after 200 ms. */
export function Answered<T>({
  query,
  lines = 3,
  children,
}: {
  query: Query<T>;
  lines?: number;
  children: (data: T) => ComponentChildren;
}) {
  const { data, error, reload } = query;
  return (
    <>
      {error !== undefined && <Problem error={error} retry={reload} />}
      {data !== undefined && children(data)}
      {data === undefined && error === undefined && <Skeleton lines={lines} />}
    </>
  );
}

export function Skeleton({ lines }: { lines: number }) {
  return (
    <div class="skeleton" role="status">
      <span class="hidden">{t('common.loading')}</span>
      {Array.from({ length: lines }, (_, line) => (
        <div key={line} class="skeleton-line" />
      ))}
    </div>
  );
}

/** Says why there is nothing, and what to do. */
export function Empty({
  icon,
  title,
  hint,
  children,
}: {
  icon: IconName;
  title: string;
  hint?: string;
  children?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <span class="empty-icon">
        <Icon name={icon} />
      </span>
      <p class="empty-title">{title}</p>
      {hint !== undefined && <p class="empty-hint">{hint}</p>}
      {children}
    </div>
  );
}

/** An error in words for people. */
export function describeProblem(error: unknown): string {
  if (!(error instanceof ApiError)) return t('problem.unreachable');
  const { code, message: text, exceeded, problems } = error;
  if (code === 'session-ended') return t('problem.session');
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

/** Whether the browser is online again, or the service answers again, since this error: that nothing answered. */
function useIsBack(error: unknown): boolean {
  const [isBack, setIsBack] = useState(false);
  useEffect(() => {
    setIsBack(false);
    if (error === undefined || error === null || error instanceof ApiError) return undefined;
    const back = () => setIsBack(true);
    let wasAway = false;
    const end = effect(() => {
      if (wasAway && awaySince.value === null) back();
      wasAway ||= awaySince.value !== null;
    });
    addEventListener('online', back);
    return () => {
      end();
      removeEventListener('online', back);
    };
  }, [error]);
  return isBack;
}

/** Shows an error in the panel that failed. That nothing answered is no longer said once something does. */
export function Problem({ error, retry }: { error: unknown; retry?: () => void }) {
  const left = useRetryAfter(error);
  const isBack = useIsBack(error);
  if (error === undefined || error === null || isBack) return null;
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

type Said = { text: string; undo?: (() => Promise<unknown>) | undefined };

const said = signal<readonly Said[]>([]);

const drop = (one: Said): void => void (said.value = said.value.filter((each) => each !== one));

/**
 * Shows a short message about what was done, in place of the one before; with `undo` beside others, for as long as
 * that can be taken back.
 */
export function say(text: string, undo?: { forMs: number; run: () => Promise<unknown> }): void {
  const one: Said = { text, undo: undo?.run };
  const undoable = said.value.filter((each) => each.undo);
  said.value = [...undoable.slice(undo ? 1 - mostUndoable : 0), one];
  setTimeout(() => drop(one), undo?.forMs ?? 5_000);
}

/** More would cover the page. */
const mostUndoable = 3;

async function takeBack(one: Said): Promise<void> {
  drop(one);
  try {
    await one.undo?.();
    say(t('common.undone'));
  } catch (error) {
    say(describeProblem(error));
  }
}

export function Toast() {
  return (
    <div class="toast" role="status" aria-live="polite">
      {said.value.map((one) => (
        <p key={one}>
          {one.text}
          {one.undo && (
            <button type="button" class="toast-undo" onClick={() => void takeBack(one)}>
              {t('jobs.undo')}
            </button>
          )}
        </p>
      ))}
    </div>
  );
}

const retryMs = 5_000;

/**
 * A script that could not be loaded is not asked for again by the browser: loads the page again once the service, which
 * was away, answers. If it answers all the time, loading again would help nobody.
 */
export function useReloadOnline(hasFailed: boolean): void {
  // With the error on the screen, not a moment later: the browser says only once that it is online.
  useLayoutEffect(() => {
    if (!hasFailed) return undefined;
    let wasAway = false;
    const look = async () => {
      const answer = await fetch(location.href, { method: 'HEAD' }).catch(() => null);
      if (wasAway && answer?.ok) location.reload();
      wasAway ||= answer === null;
    };
    const again = () => void look();
    again();
    const timer = setInterval(again, retryMs);
    addEventListener('online', again);
    return () => {
      clearInterval(timer);
      removeEventListener('online', again);
    };
  }, [hasFailed]);
}

/** A part of a page whose script is loaded when it is first shown. */
export function lazyPart<P extends object>(load: () => Promise<ComponentType<P>>) {
  let loaded: ComponentType<P> | undefined;
  return function LazyPart(props: P) {
    const [error, setError] = useState<unknown>(null);
    const [, setIsLoaded] = useState(loaded !== undefined);
    useReloadOnline(error !== null);
    useEffect(() => {
      load().then((part) => {
        loaded = part;
        setIsLoaded(true);
      }, setError);
    }, []);
    if (loaded) {
      const Part = loaded;
      return <Part {...props} />;
    }
    return error === null ? (
      <Skeleton lines={3} />
    ) : (
      <Problem error={error} retry={() => location.reload()} />
    );
  };
}
